/**
 * `lockgate db` (interfaces.md §4): damage is found (quality.md §2, bit rot), a backup has everything that was
 * acknowledged before it started, and older stores are migrated to this version.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { LOG_START } from '../../gateway/store/contract/log/log-position.js';
import { writeSums } from '../../gateway/store/file-sums.js';
import { copyDatabase, requireRoom } from '../../gateway/store/sqlite/backup/copy.js';
import { checkDatabase } from '../../gateway/store/sqlite/check/check.js';
import { checkWal } from '../../gateway/store/sqlite/check/wal.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { UPLINK_SUM } from '../../gateway/store/sqlite/log/uplink-sum-function.js';
import { migrateFolder } from '../../gateway/store/sqlite/migrate.js';
import { migrationProvider, STEPS } from '../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../gateway/store/tables/kysely.js';
import { type CommandOutput, runLockgate } from '../helpers/cli/program.js';
import { openGateway, testBytes } from '../helpers/gateway/test-gateway.js';
import { chooseSeed, SeededChance } from '../helpers/pair/seeded-chance.js';
import { runBackup } from '../helpers/store/backup-run.js';
import { flipBits, flipWalBits } from '../helpers/store/bit-flips.js';
import { killedStore } from '../helpers/store/killed-store.js';
import { stockStore } from '../helpers/store/stocked-store.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

const seed = chooseSeed();
/** The locks and pings of the stores under test; more of them only take more time. */
const STOCK = { locks: 12, pings: 120 };
t.setTimeout(170_000);

/** The fraction of flipped bits that `db check` must find (quality.md §2). */
const MIN_FOUND_FRACTION = 0.99;
/** The same for a killed store: its file has no checksums of blocks, so the check can miss a flip in unused bytes. */
const MIN_FOUND_FRACTION_KILLED = 0.75;
/** How many bits each test flips: enough to find a hole in the check, few enough to run in seconds. */
const FLIPS = { closed: 60, backup: 10, writeAheadLog: 30, killed: 40 };
/**
 * A write-ahead log (WAL) is a header, then frames: a header with a salt and a page (SQLite file format §4). The salt
 * tells the frames of this log from those of an older one.
 */
const WAL = { headerBytes: 32, frameHeaderBytes: 24, frameSaltOffset: 8, frameSaltBytes: 8 };
/** The salt and the checksum of a frame's header fill its rest. */
const FRAME_SALT_AND_SUM = [WAL.frameSaltOffset, WAL.frameHeaderBytes] as const;
const PAGE_BYTES = 4096;
/** The number of commits that a killed store's write-ahead log has. */
const COMMITS = { manyFlips: 12, few: 4 };

t.comment(`seed ${seed}; repeat: LOCKGATE_SEED=${seed} node dist/test/cli/db.test.js`);

/** The folder of a store that {@link stockedStore} copies, made by the first test that needs one. */
let firstStock: Promise<string> | undefined;

/** A closed store with rows in every table. */
async function stockedStore(test: Teardown): Promise<{ folder: string; file: string }> {
  firstStock ??= makeStock(tempFolder(t));
  const folder = tempFolder(test);
  cpSync(await firstStock, folder, { recursive: true });
  return { folder, file: path.join(folder, 'lockgate.sqlite') };
}

async function makeStock(folder: string): Promise<string> {
  await stockStore(folder, STOCK, new SeededChance(seed));
  return folder;
}

/** Runs `lockgate db …`. */
function db(...args: readonly string[]): Promise<CommandOutput> {
  return runLockgate(['db', ...args]);
}

t.test('a store with rows in every table is sound, and a check does not change it', async (t) => {
  const { folder, file } = await stockedStore(t);
  const bytes = readFileSync(file);
  const { checks, damage, schema } = await checkDatabase(file);
  t.same(damage, []);
  t.equal(schema, STEPS.at(-1), 'the schema has the name of the last migration');
  for (const name of ['blocks', 'pages', 'foreign keys', 'schema', 'rows', 'log', 'outbox', 'usage', 'kept'])
    t.ok((checks.find((check) => check.name === name)?.count ?? 0) > 0, `the check covers ${name}`);
  t.ok(readFileSync(file).equals(bytes));
  const rows = new SqliteDatabase(file, { readonly: true });
  t.teardown(() => rows.close());
  for (const table of tablesOf(rows)) {
    const columns = rows.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[];
    t.ok(columns.includes('sum'), `the rows of ${table} have checksums`);
  }
  t.ok(existsSync(path.join(folder, 'lockgate.sqlite.sums')));
});

/** The tables of the store. Tables without a rowid are left out: they serve as indexes. */
function tablesOf(store: SqliteDatabase.Database): string[] {
  const tables = store
    .prepare(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0`)
    .pluck()
    .all() as string[];
  return tables.filter((name) => !/^(sqlite|kysely)_/.test(name));
}

t.test('a check finds at least 99 % of flipped bits in a closed store', async (t) => {
  const { file } = await stockedStore(t);
  const { count, found, missed } = await flipBits(file, FLIPS.closed, new SeededChance(seed));
  t.ok(found >= count * MIN_FOUND_FRACTION, `${found} of ${count}; missed: ${missed.join('; ')}`);
});

t.test('a check finds all flipped bits in a backup', async (t) => {
  const { file } = await stockedStore(t);
  const backup = path.join(tempFolder(t), 'b.sqlite');
  writeSums(backup, await copyDatabase(file, backup));
  const { count, found, missed } = await flipBits(backup, FLIPS.backup, new SeededChance(seed));
  t.equal(found, count, missed.join('; '));
});

t.test('a check finds flipped bits in a killed store: in its file and in its write-ahead log', async (t) => {
  const { folder } = await stockedStore(t);
  const killed = await killedStore(t, folder, STOCK.locks, COMMITS.manyFlips);
  const { file, commitEnds } = killed;
  const intact = await checkDatabase(file);
  t.same(intact.damage, []);
  const frames = (statSync(`${file}-wal`).size - WAL.headerBytes) / (WAL.frameHeaderBytes + PAGE_BYTES);
  t.equal(intact.checks.find(({ name }) => name === 'wal')?.count, frames);
  // A damaged last commit looks like a truncated log, so its bits are left out.
  const inWal = await flipWalBits(file, FLIPS.writeAheadLog, new SeededChance(seed), commitEnds.at(-2) as number);
  t.equal(inWal.found, inWal.count, inWal.missed.join('; '));
  const inFile = await flipBits(file, FLIPS.killed, new SeededChance(seed), (offset) => !killed.isReplaced(offset));
  // A flip in the unused bytes of a page changes no data, and the check may miss it. It must find every other flip.
  t.same(inFile.harmful, [], `${inFile.found} of ${inFile.count} were found`);
  t.ok(inFile.found >= inFile.count * MIN_FOUND_FRACTION_KILLED, `missed: ${inFile.missed.join('; ')}`);
});

t.test('a flipped bit that makes an empty blob of a 0 is found in each uplink and in the schema', async (t) => {
  const { file } = await stockedStore(t);
  rmSync(`${file}.sums`);
  const damageAfter = async (change: string): Promise<readonly string[]> => {
    const db = new SqliteDatabase(file);
    // Else SQLite does not let its own tables be changed.
    db.unsafeMode();
    db.pragma('writable_schema = ON');
    db.exec(change);
    db.close();
    return (await checkDatabase(file)).damage.map(({ check, table, row }) => `${check} ${table} ${row}`);
  };
  // Both are packed as 0, so that the checksum is the same.
  t.same(await damageAfter(`UPDATE uplink SET buffered = x'' WHERE id = 2`), ['rows uplink 2']);
  t.same(await damageAfter(`UPDATE uplink SET buffered = 0 WHERE id = 2`), []);
  // “index” with one bit flipped.
  t.same(
    await damageAfter(`UPDATE sqlite_master SET type = 'indmx' WHERE name = 'sqlite_autoindex_sim_1'`),
    ['schema null null'],
    'an index that SQLite made by itself',
  );
});

t.test('a write-ahead log that a crash truncated is not damage', async (t) => {
  const { folder } = await stockedStore(t);
  const { file, commitEnds } = await killedStore(t, folder, STOCK.locks, COMMITS.few);
  const wal = readFileSync(`${file}-wal`);
  const [last = 0, before = 0] = [commitEnds.at(-1), commitEnds.at(-2)];
  // The end is zeros; a part of the last commit was not written; the last commit has salt and sum of an older log. The
  // last two of the list are a log cut within its last commit, and one of zeros.
  const truncated = Buffer.concat([wal.subarray(0, last), Buffer.alloc(wal.length - last)]);
  const torn = Buffer.concat([wal.subarray(0, before + 100), Buffer.alloc(500), wal.subarray(before + 600, last)]);
  const lastCommit = Buffer.from(wal.subarray(before));
  const older = Buffer.concat([wal.subarray(0, before), lastCommit.fill(7, ...FRAME_SALT_AND_SUM)]);
  for (const each of [truncated, torn, older, wal.subarray(0, before + 50), Buffer.alloc(WAL.headerBytes)]) {
    writeFileSync(`${file}-wal`, each);
    rmSync(`${file}-shm`, { force: true });
    t.same((await checkDatabase(file)).damage, []);
  }
});

t.test('a flipped bit in the salt of the last frame before the last commit is damage', async (t) => {
  const { folder } = await stockedStore(t);
  const { file, commitEnds } = await killedStore(t, folder, STOCK.locks, COMMITS.few);
  const wal = readFileSync(`${file}-wal`);
  const lastFrameOffset = (commitEnds.at(-2) as number) - (WAL.frameHeaderBytes + PAGE_BYTES);
  const saltOffset = lastFrameOffset + WAL.frameSaltOffset;
  const found: string[] = [];
  for (let byte = 0; byte < WAL.frameSaltBytes; byte += 1) {
    const flipped = Buffer.from(wal);
    flipped.writeUInt8(flipped.readUInt8(saltOffset + byte) ^ 1, saltOffset + byte);
    writeFileSync(`${file}-wal`, flipped);
    checkWal(file, { damage: (_table, _row, what) => void found.push(what), progress: () => undefined });
  }
  t.equal(found.length, WAL.frameSaltBytes, found.join('; '));
});

t.test('a set bit in unused bytes is damage, except at their edge, where a page split may leave bytes', async (t) => {
  const { file } = await stockedStore(t);
  rmSync(`${file}.sums`);
  const bytes = readFileSync(file);
  const [from, to] = unusedStretch(bytes);
  const damageWith = async (offset: number): Promise<string[]> => {
    const changed = Buffer.from(bytes);
    // One bit is set, as a flip would.
    changed.writeUInt8(8, offset);
    writeFileSync(file, changed);
    return (await checkDatabase(file)).damage.map(({ check }) => check);
  };
  t.same(await damageWith(Math.floor((from + to) / 2)), ['unused bytes']);
  t.same(await damageWith(to - 1), [], 'SQLite leaves such bytes in sound stores with a million pings');
});

/** Start and end of the first 200 or more zeros between the pointers and the cells of a page. */
function unusedStretch(bytes: Buffer): [from: number, to: number] {
  for (let page = PAGE_BYTES; page < bytes.length; page += PAGE_BYTES) {
    // The types of leaf pages, of an index and of a table, whose header has 8 bytes (SQLite file format §1.6).
    const headerBytes = { 10: 8, 13: 8 }[bytes.readUInt8(page)];
    if (headerBytes === undefined) continue;
    // The header has the number of cells at 3, whose pointers of 2 bytes follow it, and the start of the cells at 5.
    // One pointer more is left out: that of the last deleted cell may still be there.
    const [from, to] = [page + headerBytes + 2 * bytes.readUInt16BE(page + 3) + 2, page + bytes.readUInt16BE(page + 5)];
    if (to - from >= 200 && bytes.subarray(from, to).every((byte) => byte === 0)) return [from, to];
  }
  throw new Error('no page has 200 unused bytes');
}

t.test('without the file’s checksums, a damaged row is found by its own checksum, and named', async (t) => {
  const { file } = await stockedStore(t);
  rmSync(`${file}.sums`);
  const bytes = readFileSync(file);
  for (const [table, text] of [
    ['pet', 'dog'],
    ['device_state', '{"belief":{"sequence":'],
    ['attempt', 'it answered 500'],
    ['statement', '"closed_at"'],
    ['user_account', 'Zoë'],
    ['notice', 'it is late'],
    ['refusal', '203.0.113.7'],
  ] as const) {
    const flipped = Buffer.from(bytes);
    // The last occurrence is in the row; SQLite may have copied earlier ones into an index.
    const offset = flipped.lastIndexOf(text);
    t.ok(offset > 0, `${text} is in the file`);
    flipped.writeUInt8(flipped.readUInt8(offset) ^ 1, offset);
    writeFileSync(file, flipped);
    const { damage } = await checkDatabase(file);
    t.match(
      damage.filter(({ check, row }) => check === 'rows' && row !== null),
      [{ table }],
      `in ${table}`,
    );
  }
});

t.test('contradictions between rows are found, although each row has a correct checksum', async (t) => {
  const { folder, file } = await stockedStore(t);
  const changes = [
    ['log', 'uplink_name', 'UPDATE uplink_name SET sequence = sequence + 999 WHERE uplink_id = 1'],
    ['log', 'uplink_of_device', 'DELETE FROM uplink_of_device WHERE uplink_id = 5'],
    ['outbox', 'webhook_url', 'UPDATE webhook_url SET cursor = 9999 WHERE id = 1'],
    ['outbox', 'webhook_url', 'DELETE FROM attempt WHERE url_id = 1 AND uplink_id = 3'],
    ['outbox', 'attempt', 'UPDATE attempt SET uplink_id = 5000 WHERE id = 1'],
    ['outbox', 'delivery', 'UPDATE delivery SET next_attempt_at_ms = NULL WHERE uplink_id = 7 AND url_id = 1'],
    ['outbox', 'webhook_gap', 'INSERT INTO webhook_gap (url_id, after_id, until_id) VALUES (1, 9, 7)'],
    ['usage', 'usage', 'UPDATE usage SET billed_bytes_up = billed_bytes_up - 1 WHERE rowid = 1'],
    ['usage', 'statement', `UPDATE statement SET body = json_set(body, '$.totals.messages_up', 1)`],
    ['foreign keys', 'device', 'PRAGMA foreign_keys = OFF; UPDATE device SET merchant_id = 77 WHERE id = 2'],
    ['schema', null, 'DROP INDEX attempt_by_event'],
  ] as const;
  const bytes = readFileSync(file);
  for (const [check, table, sql] of changes) {
    writeFileSync(file, bytes);
    const writer = openDurable(file);
    writer.exec(sql);
    writer.close();
    rmSync(path.join(folder, 'lockgate.sqlite.sums'), { force: true });
    const { damage } = await checkDatabase(file);
    t.match(damage.find((each) => each.check === check) ?? {}, { check, table }, sql);
    t.notOk(
      damage.some((each) => each.check === 'rows'),
      'the row’s checksum is correct',
    );
  }
});

t.test(
  'db check prints a table or JSON and exits with 0 sound, 1 damaged, 2 no store; also while a gateway runs',
  async (t) => {
    const { folder, file } = await stockedStore(t);
    const sound = await db('check', file);
    t.equal(sound.exit?.code, 0);
    t.match(sound.stdout[0], /^CHECK +CHECKED +DAMAGED/);
    t.match(sound.stdout.at(-1), /^Intact: /);
    const running = tempFolder(t);
    const gateway = await openGateway(t, running);
    t.equal((await db('check', '--data', running)).exit?.code, 0, 'while a gateway runs');
    await gateway.close();
    appendFileSync(file, 'x');
    const damaged = await db('check', '--data', folder, '--json');
    t.equal(damaged.exit?.code, 1);
    t.match(JSON.parse(damaged.stdout.join('')), {
      sound: false,
      damage: [{ check: 'blocks', table: null, row: null }],
    });
    const { exit, stderr } = await db('check', path.join(folder, 'nothing'));
    t.equal(exit?.code, 2);
    t.equal(stderr.length, 1, 'one sentence');
    await t.rejects(checkDatabase(path.join(running, 'key')), { code: 'input-database' });
  },
);

t.test('db backup copies a folder to a file with mode 600, and does not overwrite an existing file', async (t) => {
  const { folder } = await stockedStore(t);
  const out = path.join(tempFolder(t), 'b.sqlite');
  const backup = await db('backup', '--out', out, '--data', folder, '--json');
  t.equal(backup.exit?.code, 0, backup.stderr.join('\n'));
  t.match(JSON.parse(backup.stdout.join('')), {
    file: out,
    from: 'folder',
    schema: STEPS.at(-1),
    not_included: ['key'],
  });
  t.equal(statSync(out).mode & 0o777, 0o600);
  t.same(readdirSync(path.dirname(out)).sort(), ['b.sqlite', 'b.sqlite.sums']);
  t.same((await checkDatabase(out)).damage, []);
  t.equal((await db('backup', '--out', out, '--data', folder)).exit?.code, 2);
  t.equal((await db('backup', '--out', out, '--data', folder, '--force')).exit?.code, 0);
  const toFolder = await db('backup', '--out', path.dirname(out), '--data', folder, '--force');
  t.match(toFolder, { exit: { code: 2 }, stderr: [/is not a file: expected a file or a new name$/] });
  // File names of common file systems have at most 255 bytes.
  const longName = path.join(path.dirname(out), 'x'.repeat(300));
  const toLongName = await db('backup', '--out', longName, '--data', folder);
  t.match(toLongName, { exit: { code: 2 }, stderr: [/can’t be written: its name is too long$/] });
  t.same(readdirSync(path.dirname(out)).sort(), ['b.sqlite', 'b.sqlite.sums'], 'no partial file is left');
  t.equal((await db('backup', '--out', `${out}2`, '--gateway', 'http://127.0.0.1:9', '--token', 'x')).exit?.code, 3);
  t.notOk(existsSync(`${out}2.part`));
});

t.test('a disk without room is reported before anything is written', async (t) => {
  // More bytes than any disk has.
  t.throws(() => requireRoom(tempFolder(t), 2 ** 60, 'a backup'), { code: 'no-room', message: /^a backup needs/ });
});

t.test('a running store makes one copy at a time, and removes it at the end', async (t) => {
  const folder = tempFolder(t);
  const store = await openSqliteStore(folder);
  const first = store.readCopy();
  await t.rejects(store.readCopy(), { code: 'backup-exists' });
  const copy = await first;
  t.equal(statSync(copy.file).mode & 0o777, 0o600);
  copy.remove();
  const interruptedCopy = t.rejects(store.readCopy(), { code: 'stopping' });
  await store.close();
  await interruptedCopy;
  t.notOk(readdirSync(folder).some((name) => name.startsWith('backup')));
});

t.test('a backup under load has everything acknowledged before it, and a store restored from it works', async (t) => {
  const run = await runBackup(t, { locks: 3, ackedBeforeBackup: 150 });
  t.equal(run.code, 0);
  t.match(run.printed, { from: 'gateway', key_id: /^[0-9a-f]{16}$/ });
  t.ok(run.ackedDuringBackup > 0, `${run.ackedDuringBackup} pings were acknowledged during the backup`);
  t.same(
    run.acked.filter((name) => !run.restored.has(name)),
    [],
    'no ping is missing',
  );
  t.same(run.damage, []);
  t.same(run.withSeveralIds, [], 'no ping has two event ids');
  t.same(run.undelivered, []);
});

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

t.test('a copy shows the store at one moment, even during writes', async (t) => {
  const { file } = await stockedStore(t);
  const writer = openDurable(file);
  t.teardown(() => writer.close());
  const to = path.join(tempFolder(t), 'copy.sqlite');
  let written = 0;
  // Writes between two parts of the copy. The table `fact` holds named values of the store.
  await copyDatabase(file, to, () => {
    writer.prepare('INSERT INTO fact (name, value) VALUES (?, ?)').run(`late-${written}`, 'x');
    written += 1;
  });
  t.ok(written > 0);
  const copy = new SqliteDatabase(to, { readonly: true });
  t.equal(copy.prepare(`SELECT count(*) FROM fact WHERE name LIKE 'late-%'`).pluck().get(), 0);
  copy.close();
  t.same((await checkDatabase(to)).damage, []);
});
