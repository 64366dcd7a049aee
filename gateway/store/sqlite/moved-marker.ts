/** The mark that `db move` leaves in a store that is now in a database. */
import type { Database } from 'better-sqlite3';
import { LockgateError } from '../../../proto/errors.js';
import { MOVED_METADATA, type MovedTo } from '../move/moved-tables.js';

/** Reads the mark; null if the store was not moved. */
export function readMovedTo(db: Database): MovedTo | null {
  const value = db.prepare('SELECT value FROM fact WHERE name = ?').pluck().get(MOVED_METADATA) as string | undefined;
  return value === undefined ? null : (JSON.parse(value) as MovedTo);
}

/** @throws LockgateError `store-moved` */
export function refuseMoved(db: Database, file: string): void {
  const moved = readMovedTo(db);
  if (moved !== null)
    throw new LockgateError(
      'store-moved',
      `the store in ${file} was moved to ${moved.to}: start with --store and the URL of that database`,
    );
}
