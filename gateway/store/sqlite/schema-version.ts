/** Which version of the schema a file has, and the schema of that version. */
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { LockgateError } from '../../../proto/errors.js';
import { Kysely, Migrator, SqliteDialect } from './kysely.js';
import { migrationProvider, STEPS } from './migrations.js';
import { registerRowSum } from './row-sum.js';
import { registerUsernameKey } from './tables/people/username-key.js';

/** A table, an index or a trigger, as SQLite lists it. */
export interface SchemaItem {
  readonly type: string;
  readonly name: string;
  /** Null for the indexes that SQLite makes by itself. */
  readonly sql: string | null;
}

/** The migrations of a file. */
export interface SchemaVersion {
  /** The steps that were applied, in order. */
  readonly done: readonly string[];
  /** The other steps of this version of lockgate. */
  readonly pending: readonly string[];
}

/**
 * Reads the version.
 *
 * @throws LockgateError `store-newer` where a newer version of lockgate wrote the file
 */
export function readSchemaVersion(db: Database, file: string): SchemaVersion {
  const isOurs = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'kysely_migration'`).get() !== undefined;
  const done = isOurs ? (db.prepare('SELECT name FROM kysely_migration ORDER BY name').pluck().all() as string[]) : [];
  const isKnown = done.every((name) => STEPS.includes(name));
  if (!isKnown && done.length > STEPS.length) throw storeNewer(file);
  return { done, pending: STEPS.filter((name) => !done.includes(name)) };
}

/** The error for a file that a newer version of lockgate wrote. */
export function storeNewer(file: string): LockgateError {
  return new LockgateError('store-newer', `${file} was written by a newer version of lockgate; run that version`);
}

/** The schema after the steps up to `last`, which are applied to an empty store in memory. */
export async function schemaAfter(last: string): Promise<SchemaItem[]> {
  const db = new SqliteDatabase(':memory:');
  try {
    registerRowSum(db);
    registerUsernameKey(db);
    const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
    const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo(last);
    if (error !== undefined) throw error;
    return db.prepare('SELECT type, name, sql FROM sqlite_master').all() as SchemaItem[];
  } finally {
    db.close();
  }
}
