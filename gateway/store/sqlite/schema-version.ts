/** Reads the schema version of a file, and computes the schema of a version. */
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { LockgateError } from '../../../proto/errors.js';
import { Kysely, Migrator, SqliteDialect } from '../tables/kysely.js';
import { NEW_STORE_STEP } from './gen/new-store-sql.js';
import { migrationProvider, STEPS } from './migrations.js';
import { makeTables } from './new-store.js';
import { registerRowChecksum } from './row-checksum.js';
import { registerUsernameKey } from './tables/people/username-key.js';

/** A table, an index or a trigger, as SQLite lists it. */
export interface SchemaItem {
  readonly type: string;
  readonly name: string;
  /** The table that an index or a trigger belongs to; a table's own name. */
  readonly tbl_name: string;
  /** Null for indexes that SQLite creates automatically. */
  readonly sql: string | null;
}

/** The migrations of a file. */
export interface SchemaVersion {
  /** The applied steps, in order. */
  readonly done: readonly string[];
  /** The steps of this version of lockgate that were not applied. */
  readonly pending: readonly string[];
}

/**
 * Reads which migrations were applied to a file.
 *
 * @throws LockgateError `store-newer` if a newer version of lockgate wrote the file
 */
export function readSchemaVersion(db: Database, file: string): SchemaVersion {
  const hasMigrations = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'kysely_migration'`).get() !== undefined;
  const done = hasMigrations
    ? (db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all() as string[])
    : [];
  // A file with an unknown step, and with more steps than this version has, is from a newer version. If it only has an
  // unknown step, the file may also be damaged: the caller decides what that means.
  const isKnown = done.every((name) => STEPS.includes(name));
  if (!isKnown && done.length > STEPS.length) throw storeNewer(file);
  return { done, pending: STEPS.filter((name) => !done.includes(name)) };
}

/** Returns the error for a file that a newer version of lockgate wrote. */
export function storeNewer(file: string): LockgateError {
  return new LockgateError('store-newer', `${file} was written by a newer version of lockgate; run that version`);
}

/** Returns the schema after the steps up to `last`, as an empty store in memory has it. */
export async function schemaAfter(last: string): Promise<SchemaItem[]> {
  // The SQL for new stores gives the schema after NEW_STORE_STEP directly: it is faster than all migrations up to it.
  const db = last === NEW_STORE_STEP ? openMemory() : await migrateInMemory(last);
  try {
    if (last === NEW_STORE_STEP) makeTables(db);
    return readSchema(db);
  } finally {
    db.close();
  }
}

/** Applies the steps up to `last` to an empty store in memory, which the caller closes. */
export async function migrateInMemory(last: string): Promise<Database> {
  const db = openMemory();
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo(last);
  if (error === undefined) return db;
  db.close();
  throw error;
}

/** An empty store in memory, with the functions that triggers call. */
function openMemory(): Database {
  const db = new SqliteDatabase(':memory:');
  registerRowChecksum(db);
  registerUsernameKey(db);
  return db;
}

/** Returns the schema of a file. */
export function readSchema(db: Database): SchemaItem[] {
  return db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_master').all() as SchemaItem[];
}
