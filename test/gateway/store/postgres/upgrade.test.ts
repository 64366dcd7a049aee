/**
 * Databases that older versions wrote (test/stores/postgres-…) are upgraded: every row stays as it was, and the store
 * works. Each step of the schema from 0005 on has a database of the version before it.
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import t from 'tap';
import { migrate } from '../../../../gateway/store/postgres/migrate.js';
import { STEPS } from '../../../../gateway/store/postgres/migrations.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import type { Month } from '../../../../gateway/usage/month.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { eventually } from '../../../helpers/gateway/webhook-setup.js';
import {
  type PostgresServer,
  postgresMissing,
  restoreDump,
  startPostgres,
} from '../../../helpers/store/postgres/server.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };

/** The first step of the schema for which test/stores/ has a database of the version before it. */
const FIRST_STEP = '0005';
/** Tables that every upgrade or start changes: which steps were applied, and which gateways run. */
const UNCOMPARED_TABLES = ['lockgate_migration', 'node', 'node_beat'];

function dumpBefore(step: string): string {
  return path.join('test', 'stores', `postgres-before-${step.slice(0, FIRST_STEP.length)}.sql.gz`);
}

/** The rows of all tables except {@link UNCOMPARED_TABLES}, each row as JSON, sorted. */
async function readRows(server: PostgresServer, database: string): Promise<Map<string, string[]>> {
  const tables = await server.query(
    database,
    `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> ALL($1)`,
    [UNCOMPARED_TABLES],
  );
  const rows = new Map<string, string[]>();
  for (const { name } of tables) {
    const found = await server.query(database, `SELECT to_jsonb(t)::text AS row FROM "${String(name)}" t ORDER BY 1`);
    rows.set(
      String(name),
      found.map(({ row }) => String(row)),
    );
  }
  return rows;
}

const steps = STEPS.map(({ name }) => name).filter((name) => name >= FIRST_STEP);

t.test('each step of the schema has a database of the version before it', async (t) => {
  for (const step of steps) t.ok(existsSync(dumpBefore(step)), dumpBefore(step));
});

for (const step of steps)
  t.test(`a database from before ${step} is upgraded without loss`, options, async (t) => {
    const server = await startPostgres(t);
    const url = await server.createDatabase();
    const database = new URL(url).pathname.slice(1);
    restoreDump(url, gunzipSync(readFileSync(dumpBefore(step))));
    const before = await readRows(server, database);
    t.ok((before.get('uplink') ?? []).length > 100, 'it has a log');
    await migrate(url);
    const after = await readRows(server, database);
    for (const [table, rows] of before) t.same(after.get(table), rows, table);

    const store = await openPostgresStore(url, { isShared: true });
    t.teardown(() => store.close());
    const { device } = (await store.findDevice(testMac(1))) ?? {};
    t.equal(device?.merchantName, 'Amber');
    const counts = { messagesUp: 1, messagesDown: 0, connections: 0, bytesUp: 7, bytesDown: 0 };
    const month = '2101-01' as Month;
    await store.usage.add([{ month, mac: testMac(1), merchantId: 1, simulated: false, ...counts }], 10);
    t.match(await store.usage.read({ month }), [{ bytesUp: 7 }]);
  });

t.test(
  'a step gives way while others read its table, so that commits go on, and is made in the end',
  options,
  async (t) => {
    const server = await startPostgres(t);
    const url = await server.createDatabase();
    const database = new URL(url).pathname.slice(1);
    restoreDump(url, gunzipSync(readFileSync(dumpBefore('0007'))));
    const ask = async (sql: string) => (await server.query(database, `SELECT ${sql} AS answer`))[0]?.answer;
    const reader = new pg.Client(url);
    t.teardown(() => reader.end());
    reader.on('error', () => undefined);
    await reader.connect();
    await reader.query('BEGIN');
    await reader.query('LOCK TABLE uplink IN ACCESS SHARE MODE');
    const migrations = Promise.all([migrate(url), migrate(url), migrate(url)]);
    const isWaiting = () =>
      ask(`EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'uplink'::regclass)`) as Promise<boolean>;
    await eventually('the step waits for the reader', isWaiting);
    // It waits behind the step, and goes on when the step gives way, while the reader still reads.
    await server.query(database, 'UPDATE uplink SET slot = slot WHERE id = 1');
    t.equal(await ask(`to_regclass('uplink_of_slot') IS NULL`), false, 'it was not made yet');
    await reader.query('COMMIT');
    await migrations;
    t.equal(await ask(`to_regclass('uplink_of_slot') IS NULL`), true);
  },
);
