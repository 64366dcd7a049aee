/** Places in a log that several gateways on PostgreSQL write: its end, and the place of a time. */
import t from 'tap';
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { WebhookUrl } from '../../../../gateway/store/contract/webhooks/webhook-url.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import type { Teardown } from '../../../helpers/store/temp-folder.js';
import { commit, HASH, uplink, withLock } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);

interface TwoGateways {
  readonly stores: readonly [Store, Store];
  /** Runs a statement in the database. */
  readonly query: (sql: string) => Promise<readonly Record<string, unknown>[]>;
}

/** Two gateways' stores on one database, with a lock each: numbers 1 and 2. */
async function twoGateways(test: Teardown): Promise<TwoGateways> {
  const open = async (folder: string) => await openPostgresStore(await databases.urlOf(folder), { isShared: true });
  const { store: first, folder } = await withLock(test, open);
  await first.addDevice({ mac: testMac(2), merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  const second = await open(folder);
  test.teardown(() => second.close());
  const server = await databases.server();
  const name = new URL(await databases.urlOf(folder)).pathname.slice(1);
  return { stores: [first, second], query: (sql) => server.query(name, sql) };
}

/** Stores an uplink of the lock of the first or second gateway. */
async function put({ stores }: TwoGateways, gateway: 0 | 1, sequence: number, receivedAtMs: number): Promise<void> {
  const lock = gateway + 1;
  await stores[gateway].append(commit(uplink(sequence, { deviceId: lock, credentialId: lock, receivedAtMs })));
}

/** Adds a webhook URL of the merchant. */
async function addUrl({ stores: [store] }: TwoGateways): Promise<WebhookUrl> {
  const url = { merchant: 'Amber', headersSealed: {}, secretSealed: HASH, nowMs: 7, url: 'http://all/' };
  return await store.addWebhookUrl(url);
}

/** The times of receipt of the merchant's events after a place, in the order of time. */
async function timesAfter({ stores: [store] }: TwoGateways, timeMs: number): Promise<number[]> {
  const events = await store.readEvents(1, await store.webhooks.findPositionAt(timeMs), 100);
  return events.map(({ receivedAtMs }) => receivedAtMs).sort((one, other) => one - other);
}

/** The highest id of each slot of the log. */
async function highestIds({ query }: TwoGateways): Promise<Map<number, number>> {
  const rows = await query('SELECT slot, max(id) AS id FROM uplink GROUP BY slot ORDER BY slot');
  return new Map(rows.map(({ slot, id }) => [Number(slot), Number(id)]));
}

t.test('the end of the log is read from marks of commits, also those of older versions', options, async (t) => {
  const two = await twoGateways(t);
  // A new URL starts at the end.
  const end = async () => (await addUrl(two)).cursor;
  t.same(await end(), new Map(), 'an empty log');
  for (const [sequence, gateway] of ([0, 1, 0, 0] as const).entries()) await put(two, gateway, sequence, 1000);
  t.equal((await highestIds(two)).size, 2);
  t.same(await end(), await highestIds(two));
  // As a gateway of the version before stores it: its mark has no id.
  const newest = '(SELECT max(n) FROM commit_mark WHERE slot = 1)';
  await two.query(`UPDATE commit_mark SET last_id = CASE WHEN n < ${newest} THEN 1 END WHERE slot = 1`);
  t.same(await end(), await highestIds(two), 'an old mark has no id: the log is searched');
});

t.test('a new URL gets what is stored after it, of all gateways', options, async (t) => {
  const two = await twoGateways(t);
  for (const gateway of [0, 1] as const) await put(two, gateway, 1, 1000);
  const url = await addUrl(two);
  for (const gateway of [1, 0] as const) await put(two, gateway, 2, 2000 + gateway);
  const events = await two.stores[0].readEvents(1, url.cursor, 100);
  t.same(events.map(({ receivedAtMs }) => receivedAtMs).sort(), [2000, 2001]);
});

t.test('the place of a time is exact in each slot, though a gateway’s clock is seconds ahead', options, async (t) => {
  const two = await twoGateways(t);
  // The second gateway's clock is 3 s ahead.
  for (let second = 0; second < 8; second += 1) {
    await put(two, 0, second, 10_000 + second * 1000);
    await put(two, 1, second, 13_000 + second * 1000 + 1);
  }
  const all = Array.from({ length: 8 }, (_, second) => [10_000 + second * 1000, 13_000 + second * 1000 + 1])
    .flat()
    .sort((one, other) => one - other);
  for (const timeMs of [0, 10_000, 10_001, 14_500, 16_000, 16_001, 16_002, 20_001, 20_002, 99_000])
    t.same(
      await timesAfter(two, timeMs),
      all.filter((each) => each >= timeMs),
      `from ${timeMs} on`,
    );
});
