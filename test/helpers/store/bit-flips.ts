/** Simulates bit rot: flips single bits of a store's file, one at a time, and checks whether `db check` finds each. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import SqliteDatabase from 'better-sqlite3';
import { checkBlocks } from '../../../gateway/store/sqlite/check/blocks.js';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import type { CheckContext } from '../../../gateway/store/sqlite/check/context.js';
import { checkWal } from '../../../gateway/store/sqlite/check/wal.js';
import type { SeededChance } from '../pair/seeded-chance.js';

/** How many flips were found, and which were not. */
export interface FlipResult {
  /** The number of flips, and how many of them `db check` found. */
  readonly count: number;
  readonly found: number;
  /** The flips that were not found, as byte and bit. */
  readonly missed: readonly string[];
  /** The missed flips that change a row or make it unreadable. The other missed flips hit unused bytes of a page. */
  readonly harmful: readonly string[];
}

/** A store's file and its write-ahead log (WAL); null if there is none. */
interface Files {
  readonly main: Buffer;
  readonly wal: Buffer | null;
}

/**
 * Flips `count` random bits of the database file, one at a time, and finally restores the file.
 *
 * @param carriesInformation whether the byte at this offset is used; only such bytes are flipped; by default all
 */
export async function flipBits(
  file: string,
  count: number,
  chance: SeededChance,
  carriesInformation: (offset: number) => boolean = () => true,
): Promise<FlipResult> {
  const files = readFiles(file);
  return await flipEach(file, count, () => {
    const offset = chooseByte(files.main, chance, carriesInformation);
    const bit = chance.between(0, 8);
    return { files: { ...files, main: flip(files.main, offset, bit) }, name: `byte ${offset}, bit ${bit}` };
  });
}

/** Flips random bits of the WAL that a killed process left, up to byte `end`. */
export async function flipWalBits(file: string, count: number, chance: SeededChance, end: number): Promise<FlipResult> {
  const files = readFiles(file);
  const wal = files.wal ?? Buffer.alloc(0);
  return await flipEach(file, count, () => {
    const offset = chance.between(0, end);
    const bit = chance.between(0, 8);
    return { files: { ...files, wal: flip(wal, offset, bit) }, name: `byte ${offset} of the WAL, bit ${bit}` };
  });
}

/** Restores the files with one flipped bit after another, and checks whether `db check` finds each. */
async function flipEach(
  file: string,
  count: number,
  nextFlip: () => { files: Files; name: string },
): Promise<FlipResult> {
  const original = readFiles(file);
  const rows = digestRows(file);
  const missed: string[] = [];
  const harmful: string[] = [];
  for (let flips = 0; flips < count; flips += 1) {
    const { files, name } = nextFlip();
    restore(file, files);
    if (await isFound(file)) continue;
    missed.push(name);
    // The check may have changed the files: to open a database, SQLite empties its WAL.
    restore(file, files);
    if (digestRows(file) !== rows) harmful.push(name);
  }
  restore(file, original);
  return { count, found: count - missed.length, missed, harmful };
}

/** All tables except the migrator's: the times in it are never read, and its names are checked at each start. */
const TABLES = `SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'kysely%' ORDER BY name`;

/** A digest of all rows of these tables, or SQLite's error if it can't read them. */
function digestRows(file: string): string {
  const database = new SqliteDatabase(file);
  try {
    const tables = database.prepare(TABLES).pluck();
    const hash = createHash('sha256');
    for (const table of tables.all()) {
      hash.update(`${table}\n`);
      for (const row of database.prepare(`SELECT * FROM "${table}"`).raw().iterate())
        hash.update(`${JSON.stringify(row)}\n`);
    }
    return hash.digest('hex');
  } catch (error) {
    return String(error);
  } finally {
    database.close();
  }
}

/** A random byte that carries information. */
function chooseByte({ length }: Buffer, chance: SeededChance, carriesInformation: (offset: number) => boolean): number {
  for (;;) {
    const offset = chance.between(0, length);
    if (carriesInformation(offset)) return offset;
  }
}

function flip(bytes: Buffer, offset: number, bit: number): Buffer {
  const flipped = Buffer.from(bytes);
  flipped.writeUInt8(flipped.readUInt8(offset) ^ (1 << bit), offset);
  return flipped;
}

/** Whether the check of a store finds damage. */
async function isFound(file: string): Promise<boolean> {
  // One check that finds the bit is enough; block checksums and those of the WAL are the quickest.
  let damaged = 0;
  const context: Omit<CheckContext, 'db'> = { damage: () => (damaged += 1), progress: () => undefined };
  checkBlocks(file, context);
  if (damaged === 0) checkWal(file, context);
  return damaged > 0 || (await checkDatabase(file)).damage.length > 0;
}

function readFiles(file: string): Files {
  const wal = `${file}-wal`;
  return { main: readFileSync(file), wal: existsSync(wal) ? readFileSync(wal) : null };
}

/** Writes the files. Deletes first what SQLite left next to the previous file. */
function restore(file: string, { main, wal }: Files): void {
  for (const suffix of ['-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
  writeFileSync(file, main);
  if (wal !== null) writeFileSync(`${file}-wal`, wal);
}
