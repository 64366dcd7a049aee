/** Stores of older versions are migrated to this version (`lockgate db migrate`, interfaces.md §4). */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { LOG_START } from '../../gateway/store/contract/log/log-position.js';
import { checkDatabase } from '../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { UPLINK_SUM } from '../../gateway/store/sqlite/log/uplink-sum-function.js';
import { migrateFolder } from '../../gateway/store/sqlite/migrate.js';
import { migrationProvider, STEPS } from '../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../gateway/store/tables/kysely.js';
import { type CommandOutput, runLockgate } from '../helpers/cli/program.js';
import { testBytes } from '../helpers/gateway/test-gateway.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

t.setTimeout(170_000);

/** Runs `lockgate db …`. */
function db(...args: readonly string[]): Promise<CommandOutput> {
  return runLockgate(['db', ...args]);
}

/** The file of a store without rows after each step, made by the first test that needs one. */
let emptyStores: Promise<ReadonlyMap<string, Buffer>> | undefined;

/** Migrates one new store step by step, and reads its file after each. */
async function makeEmptyStores(folder: string): Promise<Map<string, Buffer>> {
  const file = path.join(folder, 'lockgate.sqlite');
  const store = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: store }) });
  const migrator = new Migrator({ db: tables, provider: migrationProvider });
  const files = new Map<string, Buffer>();
  // A step is a migration, by its name.
  for (const step of STEPS) {
    // One transaction a step: Kysely would commit each statement.
    store.exec('BEGIN');
    const { error } = await migrator.migrateTo(step);
    if (error !== undefined) throw error;
    store.exec('COMMIT');
    store.pragma('wal_checkpoint(TRUNCATE)');
    files.set(step, readFileSync(file));
  }
  store.close();
  return files;
}

/** Creates a store as an older version left it: migrated up to `step`, with a merchant, a lock and an uplink. */
async function olderStore(folder: string, step: string): Promise<void> {
  emptyStores ??= makeEmptyStores(tempFolder(t));
  const file = path.join(folder, 'lockgate.sqlite');
  writeFileSync(file, (await emptyStores).get(step) as Buffer, { mode: 0o600 });
  const older = openDurable(file);
  older.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
    INSERT INTO device (id, mac, merchant_id, simulated, created_at_ms) VALUES (1, 'A4C138000001', 1, 0, 1);
    INSERT INTO device_state (device_id, state) VALUES (1, '{}')`);
  // The values after the columns: each id and number is 1, the digest is any 8 bytes, and it came at 9 ms.
  const columns =
    'id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes, received_at_ms, buffered';
  older
    .prepare(`INSERT INTO uplink (${columns}) VALUES (1, 1, 1, 1, 1, 1, ?, 1, ?, 9, 0)`)
    .run(Buffer.alloc(8, 1), testBytes(1));
  const isSummed = older.prepare(`SELECT 1 FROM pragma_table_info('uplink') WHERE name = 'sum'`).get() !== undefined;
  if (isSummed) older.exec(`UPDATE uplink SET sum = ${UPLINK_SUM}`);
  older.close();
}

for (const [index, step] of STEPS.slice(0, -1).entries()) {
  t.test(`a store of ${step} is migrated, and a copy of the old file is stored`, async (t) => {
    const folder = tempFolder(t);
    await olderStore(folder, step);
    const before = readFileSync(path.join(folder, 'lockgate.sqlite'));
    const dry = await migrateFolder(folder, { isDry: true });
    t.same(dry, { from: step, steps: STEPS.slice(index + 1), copy: null });
    t.ok(readFileSync(path.join(folder, 'lockgate.sqlite')).equals(before), 'a dry run changes nothing');
    const { copy, ...done } = await migrateFolder(folder);
    t.same(done, { from: step, steps: STEPS.slice(index + 1) });
    t.match(copy, new RegExp(`/lockgate.sqlite.${step}.20..-..-..T..-..-..Z$`));
    t.ok(readFileSync(copy ?? '').equals(before), 'the copy has every byte');
    t.equal(statSync(copy ?? '').mode & 0o777, 0o600);
    t.same((await checkDatabase(path.join(folder, 'lockgate.sqlite'))).damage, []);
    t.same((await checkDatabase(copy ?? '')).damage, []);
    t.same(await migrateFolder(folder), { from: STEPS.at(-1), steps: [], copy: null });
    const store = await openSqliteStore(folder);
    // Of merchant 1, at most nine events.
    t.match(await store.readEvents(1, LOG_START, 9), [{ sequence: 1 }]);
    t.equal(await store.readDeviceState(1), '{}');
    await store.close();
  });
}

t.test('opening an older store stores a copy before migrating, but a new store gets no copy', async (t) => {
  const folder = tempFolder(t);
  await olderStore(folder, STEPS[0] as string);
  await (await openSqliteStore(folder)).close();
  const copies = readdirSync(folder).filter((name) => name.startsWith(`lockgate.sqlite.${STEPS[0]}.`));
  t.equal(copies.length, 2, 'the copy and its sums');
  const newFolder = tempFolder(t);
  await (await openSqliteStore(newFolder)).close();
  t.same(readdirSync(newFolder).sort(), ['gateway.lock', 'lockgate.sqlite', 'lockgate.sqlite.sums']);
});

t.test('db migrate reports its steps, and refuses a newer store and a store in use', async (t) => {
  const folder = tempFolder(t);
  await olderStore(folder, STEPS[0] as string);
  const done = await db('migrate', '--data', folder, '--json');
  t.match(JSON.parse(done.stdout.join('')), { from: STEPS[0], to: STEPS.at(-1), dry_run: false, copy: /T/ });
  const store = await openSqliteStore(folder);
  const inUse = await db('migrate', '--data', folder);
  t.equal(inUse.exit?.code, 3);
  t.match(inUse.stderr, [/^lockgate: another gateway is running on this data folder/]);
  await store.close();
  const newer = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  // The name of a migration that this version does not know.
  newer.prepare('INSERT INTO kysely_migration (name, timestamp) VALUES (?, ?)').run('9999-later', '2030-01-01');
  newer.close();
  const refused = await db('migrate', '--data', folder);
  t.equal(refused.exit?.code, 3);
  t.match(refused.stderr, [/written by a newer version of lockgate; run that version$/]);
  await t.rejects(migrateFolder(path.join(folder, 'none')), { code: 'input-data' });
});
