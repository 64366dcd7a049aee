/**
 * Migrates a store to this version's schema, forward only. The file is copied first, to a name with its version and the
 * time, so that an older version of lockgate can run on the copy.
 */
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { StoreFailure } from '../contract/errors.js';
import { sumFile, writeSums } from '../file-sums.js';
import { Kysely, Migrator, SqliteAdapter, SqliteDialect } from '../tables/kysely.js';
import { requireRoom } from './backup/copy.js';
import { sumClosedFile } from './closed-file.js';
import { openDurable } from './durable-file.js';
import { lockData } from './folder/data-lock.js';
import { takeFolder } from './folder/take-folder.js';
import { unmarkRunning } from './folder/wal-presence.js';
import { catchUp } from './log/log-catch-up.js';
import { migrationProvider } from './migrations.js';
import { isEmptyFile, makeTables } from './new-store.js';
import { readSchemaVersion, storeNewer } from './schema-version.js';

/** The free disk space that a migration needs, divided by the file's size: for the copy, and for new data. */
const NEEDED_SPACE_FACTOR = 3;

/**
 * Makes Kysely apply all steps, and the record of them, in one transaction. By default Kysely commits each statement; a
 * process that is killed between two statements would leave a store that neither version can open. SQLite can roll back
 * changes of tables.
 */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class TransactionalDialect extends SqliteDialect {
  override createAdapter(): TransactionalAdapter {
    return new TransactionalAdapter();
  }
}

/** What a migration did or, in a dry run, would do. */
export interface Migrated {
  /** The last step that was applied earlier; null for a new store. */
  readonly from: string | null;
  /** The newly applied steps, in order. */
  readonly steps: readonly string[];
  /** The copy of the store from before the migration; null if the store had no rows. */
  readonly copy: string | null;
}

/**
 * Migrates the store that `writer` has open.
 *
 * @param purpose what the caller does with the store, for an error's sentence: "the store could not open …"
 * @throws LockgateError `store-newer`, `no-room`
 * @throws StoreFailure if it fails; the store is then unchanged
 */
export async function migrate(writer: Database, file: string, purpose: 'make' | 'open'): Promise<Migrated> {
  const { done, pending } = readCheckedVersion(writer, file, purpose);
  const from = done.at(-1) ?? null;
  if (pending.length === 0) return { from, steps: [], copy: null };
  const copy = from !== null && hasRows(writer) ? copyBeforeMigration(writer, file, from) : null;
  if (isEmptyFile(writer)) makeTablesIn(writer, file, purpose);
  // A new store has every step now, unless the script that makes it lacks the newest.
  if (readCheckedVersion(writer, file, purpose).pending.length === 0) return { from, steps: pending, copy };
  const tables = new Kysely<unknown>({ dialect: new TransactionalDialect({ database: writer }) });
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateToLatest();
  if (error === undefined) return { from, steps: pending, copy };
  // Kysely's message if an applied step is unknown, or comes after a missing one. The check above finds both; this is
  // for a store that another program changes meanwhile.
  if (error instanceof Error && error.message.includes('corrupted migrations')) throw storeNewer(file);
  throw new StoreFailure(`${purpose} ${file}`, error);
}

/** Makes the tables of a new store. @throws StoreFailure if it fails; the file is then still empty */
function makeTablesIn(writer: Database, file: string, purpose: 'make' | 'open'): void {
  try {
    makeTables(writer);
  } catch (error) {
    throw new StoreFailure(`${purpose} ${file}`, error);
  }
}

/** The applied and the pending steps. @throws LockgateError `store-newer` if another version wrote the store */
function readCheckedVersion(db: Database, file: string, purpose: 'make' | 'open') {
  try {
    const { done, pending } = readSchemaVersion(db, file);
    const isAscending = done.every((name, index) => index === 0 || name > (done[index - 1] as string));
    // `readSchemaVersion` refuses a store with more steps than this version has. Another version also wrote the store
    // if steps were applied in another order, or if one before the last is missing.
    const last = done.at(-1) ?? '';
    if (!isAscending || pending.some((name) => name < last)) throw storeNewer(file);
    return { done, pending };
  } catch (error) {
    throw error instanceof LockgateError ? error : new StoreFailure(`${purpose} ${file}`, error);
  }
}

/** Options of {@link migrateFolder}. */
export interface MigrateOptions {
  /** Only returns what a migration would do. */
  readonly isDry?: boolean;
  /** Called with a sentence after file modes were corrected: other users could read files of the folder. */
  readonly onModesCorrected?: ((sentence: string) => void) | undefined;
}

/** Whether any table has rows. */
function hasRows(db: Database): boolean {
  const tables = db
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
      AND name NOT LIKE 'kysely_%'`)
    .pluck()
    .all() as string[];
  return tables.some((table) => db.prepare(`SELECT 1 FROM "${table}" LIMIT 1`).get() !== undefined);
}

/** Copies the store's file to a name with its version and the time. Returns the name. */
function copyBeforeMigration(writer: Database, file: string, version: string): string {
  const folder = path.dirname(file);
  requireRoom(folder, statSync(file).size * NEEDED_SPACE_FACTOR, `to bring ${file} to this version of lockgate`);
  // Copies the WAL into the file, so that the file is complete.
  writer.pragma('wal_checkpoint(TRUNCATE)');
  // Such as 2026-11-20T06-00-00Z.
  const time = new Date(systemClock.now()).toISOString().replaceAll(':', '-').replace(/\.\d+/, '');
  const copy = freeName(`${file}.${version}.${time}`);
  try {
    copyFileSync(file, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    chmodSync(copy, 0o600);
    const handle = openSync(copy, 'r+');
    fsyncSync(handle);
    closeSync(handle);
    // Writing the .sums file syncs the folder, which makes the name of the copy durable too.
    writeSums(copy, sumFile(copy));
  } catch (error) {
    rmSync(copy, { force: true });
    throw new StoreFailure(`copy ${file}`, error);
  }
  return copy;
}

/** A name that no file has yet: the given one, or that with a number. */
function freeName(name: string): string {
  let candidate = name;
  for (let number = 2; existsSync(candidate); number += 1) candidate = `${name}-${number}`;
  return candidate;
}

/**
 * Migrates the store in a data folder that no gateway runs on.
 *
 * @throws LockgateError `input-data` if there is no store, `store-newer`, `no-room`; what `takeFolder` throws
 */
export async function migrateFolder(
  folder: string,
  { isDry = false, onModesCorrected }: MigrateOptions = {},
): Promise<Migrated> {
  const file = path.join(folder, 'lockgate.sqlite');
  if (!existsSync(file)) throw new LockgateError('input-data', `there is no store in ${folder}: no ${file}`);
  if (isDry) return dryRun(folder, file);
  const { lock } = await takeFolder(folder, { onModesCorrected });
  try {
    const writer = openDurable(file);
    try {
      const migrated = await migrate(writer, file, 'open');
      // Fills the log's indexes where an upgrade left that for later, as a gateway does at its start.
      await catchUp(writer, () => undefined);
      return migrated;
    } finally {
      unmarkRunning(file);
      writer.close();
      sumClosedFile(file);
    }
  } finally {
    lock.release();
  }
}

/** What a migration would do, while no gateway runs on the folder. */
function dryRun(folder: string, file: string): Migrated {
  const lock = lockData(path.join(folder, 'gateway.lock'));
  try {
    return readPending(file);
  } finally {
    lock.release();
  }
}

function readPending(file: string): Migrated {
  const db = new SqliteDatabase(file, { readonly: true });
  try {
    const { done, pending } = readCheckedVersion(db, file, 'open');
    return { from: done.at(-1) ?? null, steps: pending, copy: null };
  } finally {
    db.close();
  }
}
