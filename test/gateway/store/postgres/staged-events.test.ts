/**
 * Events about the ends of commands that some gateway staged and did not move into the log: the next commits move them,
 * and do not look for others as long as there are none.
 */
import t from 'tap';
import { withClient } from '../../../../gateway/store/postgres/connections/connections.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { FaultProxy } from '../../../helpers/chaos/fault-proxy.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const databases = new TestDatabases(t);
const COMMITS = 50;
/** The statement of each commit, and what beats and other work send meanwhile. */
const MAX_SENT = 75;

const skip = postgresMissing ?? false;

t.test('staged events are moved by the next commits, and cost others nothing', { skip }, async (t) => {
  const direct = await databases.urlOf(tempFolder(t));
  const url = new URL(direct);
  const port = Number(url.port);
  const proxy = await FaultProxy.start(t, () => port);
  url.port = String(proxy.port);
  const store = await openPostgresStore(url.href);
  await store.addMerchant('Amber', 5);
  const { id } = await store.addDevice({
    ...{ mac: testMac(1), merchant: 'Amber', simulated: true, nowMs: 6 },
    secretHash: Buffer.alloc(32, 1),
  });
  const commitState = async (n: number): Promise<void> => {
    await store.append({ incoming: [], judged: [], states: new Map([[id, `{"n":${n}}`]]) });
  };
  // The first commit looks for staged events, since a gateway may have ended before it moved some.
  await commitState(0);
  const before = proxy.sent;
  for (let n = 1; n <= COMMITS; n += 1) await commitState(n);
  t.ok(proxy.sent - before <= MAX_SENT, `${proxy.sent - before} pieces were sent for ${COMMITS} commits`);

  const staged = "INSERT INTO staged_event (device_id, merchant_id, kind, at_ms, content) VALUES ($1, 1, 4, $2, '{}')";
  await withClient(direct, async (client) => {
    for (const atMs of [7, 8]) await client.query(staged, [id, atMs]);
  });
  // No other commit follows: this one sees that there are events, and another one moves them.
  await commitState(COMMITS + 1);
  await store.close();
  const { rows, left } = await withClient(direct, async (client) => ({
    rows: (await client.query('SELECT received_at_ms AS at, kind FROM uplink ORDER BY id')).rows,
    left: (await client.query('SELECT count(*)::int AS count FROM staged_event')).rows,
  }));
  t.same(rows, [
    { at: 7, kind: 4 },
    { at: 8, kind: 4 },
  ]);
  t.same(left, [{ count: 0 }]);
});
