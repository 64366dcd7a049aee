/** Accepting an invitation in PostgreSQL excludes other writes for its merchant, which is found by the token. */
import t from 'tap';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { withLock } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);

const ROUNDS = 30;

t.test('an invited user and an added one at the same time: neither ids nor names collide', options, async (t) => {
  const { store } = await withLock(t, (folder) => databases.open(folder));
  const absent = { firstName: null, lastName: null, email: null, phone: null, userStatus: null, passwordHash: null };
  for (let round = 1; round <= ROUNDS; round += 1) {
    const tokenHash = Buffer.alloc(32, round);
    const invitation = { merchantId: 1, username: null, dashboardRole: 'viewer' as const, tokenHash };
    await store.invitations.add({ ...invitation, nowMs: 10, expiresAtMs: 1_000 });
    const user = { ...absent, id: null, username: `ann${round}` };
    const results = await Promise.allSettled([
      store.invitations.accept({ tokenHash, user, nowMs: 20 }),
      store.people.addUsers(
        1,
        [
          { ...user, username: `ANN${round}` },
          { ...user, username: `bob${round}` },
        ],
        20,
      ),
    ]);
    const refused = results.filter((result) => result.status === 'rejected');
    t.match(refused, [{ reason: { code: 'user-exists' } }], 'the later of the two finds the name taken');
    t.equal(refused.length, 1);
  }
});
