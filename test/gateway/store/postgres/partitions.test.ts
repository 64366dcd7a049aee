/**
 * The partitions of the log in PostgreSQL, one for each day. A gateway makes them for some days ahead, when it starts
 * and each hour; old days that no webhook URL needs are dropped as a whole.
 */
import pg from 'pg';
import t from 'tap';
import { SLOT_COUNT } from '../../../../gateway/store/contract/log/log-position.js';
import { CLOCK_ID_EPOCH_MS } from '../../../../gateway/store/contract/slots/clock-id.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { idsOfDay, PartitionKeeper, partitionName } from '../../../../gateway/store/postgres/partitions.js';
import { QueryableSql } from '../../../../gateway/store/postgres/sql.js';
import { Days, Hours, ManualClock, systemClock } from '../../../../proto/clock.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';
import { commit, HASH, MAC, uplink } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);

const PARTITIONS = `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'uplink'::regclass AND c.relname <> 'uplink_default' ORDER BY c.relname`;

t.test('a gateway that ran on past its last partition can be started again on the same day', options, async (t) => {
  const folder = tempFolder(t);
  const server = await databases.server();
  const name = new URL(await databases.urlOf(folder)).pathname.slice(1);
  const first = await databases.open(folder);
  await first.addMerchant('Amber', 5);
  await first.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  // As if the days for which it has partitions had passed.
  const days = (await server.query(name, PARTITIONS)).map((row) => String(row.name));
  t.ok(days.length > 0);
  await server.query(name, `DROP TABLE ${days.join(', ')}`);
  await first.append(commit(uplink(1)));
  t.same(await server.query(name, 'SELECT count(*)::int AS count FROM uplink_default'), [{ count: 1 }]);
  await first.close();

  const second = await databases.open(folder);
  t.teardown(() => second.close());
  const made = (await server.query(name, PARTITIONS)).map((row) => String(row.name));
  // Today's uplink is in the default partition, so today can't get one of its own.
  t.same(made, days.slice(1), 'the days after this one have partitions again');
  await second.append(commit(uplink(2)));
  const stored = await second.readUplinks(1, 10);
  t.same(
    stored.map(({ sequence }) => sequence),
    [2, 1],
  );
});

t.test('a gateway makes the next days’ partitions each hour', options, async (t) => {
  const folder = tempFolder(t);
  const store = await databases.open(folder);
  t.teardown(() => store.close());
  const client = new pg.Client({ connectionString: await databases.urlOf(folder) });
  await client.connect();
  t.teardown(() => client.end());
  const list = async () => (await client.query(PARTITIONS)).rows.map(({ name }) => String(name));
  const days = await list();
  const clock = new ManualClock();
  let finished: Promise<void> = Promise.resolve();
  const keeper = new PartitionKeeper({
    clock,
    run: (work) => {
      finished = client.query('BEGIN').then(() => work(new QueryableSql(client)));
      finished = finished.then(() => client.query('COMMIT')).then(() => undefined);
      return finished;
    },
  });
  await keeper.start();
  await client.query(`DROP TABLE ${days.slice(1).join(', ')}`);
  clock.advance(Hours(1) - 1);
  await finished;
  t.same(await list(), days.slice(0, 1), 'not yet');
  clock.advance(1);
  await finished;
  t.same(await list(), days);
  const indexes = `SELECT count(*)::int AS count FROM pg_index WHERE indrelid = $1::regclass`;
  const countOf = async (name = '') => (await client.query(indexes, [name])).rows[0];
  t.same(await countOf(days.at(-1)), await countOf('uplink'), 'with all indexes');
  await keeper.stop();
});

/**
 * Makes a day's partition with uplinks of the merchant 1 in it, as if they had been received that day in the slot 1.
 */
async function fillDay(database: string, day: number, sequences: readonly number[]): Promise<void> {
  const server = await databases.server();
  const [from, to] = idsOfDay(day);
  const atMs = CLOCK_ID_EPOCH_MS + day * Days(1);
  const rows = sequences.map(
    (sequence, index) => `(${from + SLOT_COUNT * index + 1}, 1, 1, 1, 1, 1, ${sequence}, ${atMs}, 1, 0, '', '', 0)`,
  );
  await server.query(
    database,
    `CREATE TABLE ${partitionName(day)} PARTITION OF uplink FOR VALUES FROM (${from}) TO (${to})`,
  );
  await server.query(
    database,
    `INSERT INTO uplink (id, slot, device_id, merchant_id, credential_id, boot, sequence, received_at_ms, kind,
       buffered, digest, bytes, sum) VALUES ${rows.join(', ')}`,
  );
}

/** Sweeps the log as gateway/retention.ts does. */
async function sweep(store: Store, beforeMs: number) {
  const swept = { deleted: 0, held: 0 };
  for (let afterId: number | null = 0; afterId !== null; ) {
    const step = await store.deleteOld({ table: 'uplink', beforeMs, afterId, limit: 2 });
    swept.deleted += step.deleted;
    swept.held += step.held;
    afterId = step.nextId;
  }
  return swept;
}

t.test('old days are dropped as a whole, except those that a webhook URL needs', options, async (t) => {
  const folder = tempFolder(t);
  const store = await databases.open(folder);
  t.teardown(() => store.close());
  await store.addMerchant('Amber', 5);
  await store.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  const server = await databases.server();
  const name = new URL(await databases.urlOf(folder)).pathname.slice(1);
  const today = Math.floor((systemClock.now() - CLOCK_ID_EPOCH_MS) / Days(1));
  const partitionsBefore = (await server.query(name, PARTITIONS)).length;
  for (const [day, sequences] of [
    [today - 50, [1, 2]],
    [today - 40, [3, 4, 5]],
    [today - 20, [6]],
  ] as const)
    await fillDay(name, day, sequences);
  const secretSealed = Buffer.from('s');
  const { id: urlId } = await store.addWebhookUrl({
    merchant: 'Amber',
    url: 'http://a/',
    headersSealed: {},
    secretSealed,
    nowMs: 7,
  });
  // The URL has read the slot 1 beyond the oldest day, and has an attempt at an event of that day.
  const readUpTo = idsOfDay(today - 45)[0];
  await server.query(name, `DELETE FROM url_cursor; INSERT INTO url_cursor VALUES (${urlId}, 1, ${readUpTo})`);
  const attempted = idsOfDay(today - 50)[0] + 1;
  await server.query(
    name,
    `INSERT INTO attempt (url_id, uplink_id, number, at_ms, duration_ms) VALUES (${urlId}, ${attempted}, 1, 1, 1)`,
  );
  const beforeMs = systemClock.now() - Days(30);
  t.same(await sweep(store, beforeMs), { deleted: 2, held: 3 });
  const left = (await server.query(name, PARTITIONS)).map((row) => row.name);
  t.same(left.slice(0, -partitionsBefore), [partitionName(today - 40), partitionName(today - 20)]);
  t.same(await server.query(name, 'SELECT * FROM attempt'), [], 'no attempt is left without its event');
  const pending = idsOfDay(today - 40)[0] + 1;
  await server.query(name, `UPDATE url_cursor SET id = ${idsOfDay(today)[0]}`);
  await server.query(
    name,
    `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms)
     VALUES (${urlId}, ${pending}, 'pending', 1, 9)`,
  );
  t.same(await sweep(store, beforeMs), { deleted: 2, held: 1 }, 'row by row, while one waits for a retry');
  await store.webhooks.change(urlId, { disabledWhy: 'a test' });
  t.same(await sweep(store, beforeMs), { deleted: 1, held: 0 }, 'a disabled URL needs nothing');
  const leftNow = (await server.query(name, PARTITIONS)).map((row) => row.name);
  t.same(leftNow.slice(0, -partitionsBefore), [partitionName(today - 20)]);
  t.same(await server.query(name, 'SELECT * FROM delivery'), []);
  // As if a gateway whose clock is wrong had received it.
  await server.query(name, `UPDATE uplink SET received_at_ms = ${systemClock.now()}`);
  t.same(await sweep(store, systemClock.now() - Days(10)), { deleted: 0, held: 0 });
});
