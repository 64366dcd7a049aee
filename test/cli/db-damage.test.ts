/**
 * `lockgate db check` (interfaces.md §4) finds damage (quality.md §2, bit rot): flipped bits, damaged rows,
 * contradictions.
 */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { writeSums } from '../../gateway/store/file-sums.js';
import { copyDatabase } from '../../gateway/store/sqlite/backup/copy.js';
import { checkDatabase } from '../../gateway/store/sqlite/check/check.js';
import { checkWal } from '../../gateway/store/sqlite/check/wal.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { STEPS } from '../../gateway/store/sqlite/migrations.js';
import { chooseSeed, SeededChance } from '../helpers/pair/seeded-chance.js';
import { flipBits, flipWalBits } from '../helpers/store/bit-flips.js';
import { killedStore } from '../helpers/store/killed-store.js';
import { sharedStock } from '../helpers/store/shared-stock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const seed = chooseSeed();
t.comment(`seed ${seed}; repeat: LOCKGATE_SEED=${seed} node dist/test/cli/db-damage.test.js`);
t.setTimeout(170_000);

/** The locks and pings of the stores under test; more of them only take more time. */
const STOCK = { locks: 12, pings: 120 };
/** Copies a closed store with rows in every table. */
const stockedStore = sharedStock(t, STOCK, new SeededChance(seed));
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

t.test('a flip that no row’s checksum shows is found: of a value’s type in an uplink, and in the schema', async (t) => {
  const { file } = await stockedStore(t);
  rmSync(`${file}.sums`);
  const damageAfter = async (change: string): Promise<readonly string[]> => {
    const db = new SqliteDatabase(file);
    // Otherwise SQLite refuses changes of its own tables.
    db.unsafeMode();
    db.pragma('writable_schema = ON');
    db.exec(change);
    db.close();
    return (await checkDatabase(file)).damage.map(({ check, table, row }) => `${check} ${table} ${row}`);
  };
  // An empty blob in place of a 0: the checksum is the same for both.
  t.same(await damageAfter(`UPDATE uplink SET buffered = x'' WHERE id = 2`), ['rows uplink 2']);
  t.same(await damageAfter(`UPDATE uplink SET buffered = 0 WHERE id = 2`), []);
  // “index” with one bit flipped.
  t.same(
    await damageAfter(`UPDATE sqlite_master SET type = 'indmx' WHERE name = 'sqlite_autoindex_sim_1'`),
    ['schema null null'],
    'an index that SQLite made by itself',
  );
  // SQLite reads a column under either name, but returns it under the one in the schema.
  const renamed = `UPDATE sqlite_master SET sql = replace(sql, 'started_after', 'Started_after')`;
  t.match(
    await damageAfter(`${renamed} WHERE name = 'webhook_url'`),
    ['schema null null', 'schema null null', /^outbox /],
    'a column’s name in which one letter became a capital',
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
    ['log', 'uplink_of_device', 'UPDATE uplink_of_device SET hint = hint + 1 WHERE uplink_id = 5'],
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
