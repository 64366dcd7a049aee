/**
 * The accounts of locks that connect at once, as thousands do after the end of a gateway: read by few queries, each
 * with the right answer.
 */
import t from 'tap';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { FaultProxy } from '../../../helpers/chaos/fault-proxy.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const databases = new TestDatabases(t);
const LOCKS = 300;
/** A query is sent in a few pieces; one for each lock would be at least as many as the locks. */
const MAX_SENT = 20;

t.test('the accounts of many locks are read by few queries', { skip: postgresMissing ?? false }, async (t) => {
  const url = new URL(await databases.urlOf(tempFolder(t)));
  const port = Number(url.port);
  const proxy = await FaultProxy.start(t, () => port);
  url.port = String(proxy.port);
  const store = await openPostgresStore(url.href);
  t.teardown(() => store.close());
  await store.addMerchant('Amber', 5);
  const secretOf = (number: number): Buffer => Buffer.alloc(32, number % 256);
  await store.addDevices(
    Array.from({ length: LOCKS }, (_, index) => ({
      ...{ mac: testMac(index + 1), merchant: 'Amber', simulated: index % 2 === 1, nowMs: 6 },
      secretHash: secretOf(index + 1),
    })),
  );
  const before = proxy.sent;
  // Every lock, one twice, one as a phone, and one that does not exist.
  const [accounts, again, phone, unknown] = await Promise.all([
    Promise.all(Array.from({ length: LOCKS }, (_, index) => store.findLock(testMac(index + 1)))),
    store.findLock(testMac(7)),
    store.findLock(testMac(7), 'phone'),
    store.findLock(testMac(LOCKS + 1)),
  ]);
  t.ok(proxy.sent - before <= MAX_SENT, `${proxy.sent - before} pieces were sent`);
  for (const [index, account] of accounts.entries()) {
    t.match(account, { mac: testMac(index + 1), simulated: index % 2 === 1, isMerchantClosed: false });
    t.same(
      account?.credentials.map(({ secretHash }) => Buffer.from(secretHash)),
      [secretOf(index + 1)],
    );
  }
  t.same(again, accounts[6]);
  t.match(phone, { deviceId: accounts[6]?.deviceId, credentials: [] });
  t.equal(unknown, null);
});
