/**
 * A store in a data folder that is moved to a database (`db move`). The folder is locked, and the store was checked and
 * brought to this version's schema.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Database } from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import { MOVED_METADATA, type MovedTo } from '../../move/moved-tables.js';
import type { MovedValue } from '../../move/rows-sum.js';
import { sumClosedFile } from '../closed-file.js';
import { openDurable } from '../durable-file.js';
import type { DataLock } from '../folder/data-lock.js';
import { STORE_NAME } from '../folder/folder-access.js';
import { type TakeOptions, takeFolder } from '../folder/take-folder.js';
import { unmarkRunning } from '../folder/wal-presence.js';
import { catchUp } from '../log/log-catch-up.js';
import { migrate } from '../migrate.js';
import { readMovedTo } from '../moved-marker.js';
import { SUM_COLUMN } from '../row-checksum-triggers.js';
import { checkInThread, type ReportUpkeep } from '../upkeep/upkeep.js';

/** Rows that are read, and sent to the database, at once. */
const ROWS_PER_CHUNK = 1_000;

/** The shape of a table. */
export interface SourceTable {
  readonly columns: readonly string[];
  readonly rowCount: number;
  /** The highest id that the table ever gave, even to a deleted row; 0 if it gives none. */
  readonly lastId: bigint;
}

export class MoveSource {
  readonly #db: Database;
  readonly #file: string;
  readonly #lock: DataLock;

  private constructor(db: Database, file: string, lock: DataLock) {
    this.#db = db;
    this.#file = file;
    this.#lock = lock;
  }

  /**
   * Opens the store in a folder.
   *
   * @throws LockgateError `input-data` if there is no store, `data-in-use`, `store-damaged` if any row or page is not
   * what was written; what `takeFolder` throws
   */
  static async open(folder: string, report: ReportUpkeep, options: TakeOptions): Promise<MoveSource> {
    const file = path.join(folder, STORE_NAME);
    if (!existsSync(file)) throw new LockgateError('input-data', `there is no store in ${folder}: no ${file}`);
    const { lock } = await takeFolder(folder, options);
    try {
      await refuseDamaged(file, report);
      const db = openDurable(file);
      const source = new MoveSource(db, file, lock);
      try {
        await migrate(db, file, 'open');
        await catchUp(db, () => undefined);
        return source;
      } catch (error) {
        source.#closeFile();
        throw error;
      }
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** Where the store was moved to; null if it was not. */
  readMovedTo(): MovedTo | null {
    return readMovedTo(this.#db);
  }

  /** Records, durably, that the store was moved: from now on no gateway starts on it. */
  writeMovedTo(movedTo: MovedTo): void {
    this.#db
      .prepare('INSERT INTO fact (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
      .run(MOVED_METADATA, JSON.stringify(movedTo));
  }

  /** The names of all tables but those of SQLite itself and of Kysely. */
  tableNames(): string[] {
    return this.#db
      .prepare(
        `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
         AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'kysely_%'`,
      )
      .pluck()
      .all() as string[];
  }

  /** @param name one of {@link tableNames} */
  table(name: string): SourceTable {
    const all = this.#db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(name) as string[];
    // Only the log's checksums are moved: PostgreSQL's pages have their own.
    const columns = all.filter((column) => name === 'uplink' || column !== SUM_COLUMN);
    const rowCount = this.#db.prepare(`SELECT count(*) FROM "${name}"`).pluck().get() as number;
    const lastId = this.#db.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').pluck().safeIntegers();
    return { columns, rowCount, lastId: (lastId.get(name) as bigint | undefined) ?? 0n };
  }

  /** Reads the rows of a table, in chunks; the values of a row are in the order of these columns. */
  *rows(name: string, columns: readonly string[]): Generator<MovedValue[][]> {
    const list = columns.map((column) => `"${column}"`).join(', ');
    const statement = this.#db.prepare(`SELECT ${list} FROM "${name}"`).raw().safeIntegers();
    let chunk: MovedValue[][] = [];
    for (const row of statement.iterate() as IterableIterator<MovedValue[]>) {
      chunk.push(row);
      if (chunk.length < ROWS_PER_CHUNK) continue;
      yield chunk;
      chunk = [];
    }
    if (chunk.length > 0) yield chunk;
  }

  /** Closes the store and unlocks the folder. */
  close(): void {
    try {
      this.#closeFile();
    } finally {
      this.#lock.release();
    }
  }

  #closeFile(): void {
    unmarkRunning(this.#file);
    this.#db.close();
    sumClosedFile(this.#file);
  }
}

/** Everything is checked before it is copied: the copy's new checksums would hide damage. */
async function refuseDamaged(file: string, report: ReportUpkeep): Promise<void> {
  const { checks } = await checkInThread(file, report);
  const damaged = checks.reduce((sum, check) => sum + check.damaged, 0);
  if (damaged > 0)
    throw new LockgateError(
      'store-damaged',
      `${file} is damaged in ${damaged === 1 ? 'one place' : `${damaged} places`}, which “lockgate db check” lists: ` +
        'restore an intact backup, and move that',
    );
}
