/**
 * Opens every connection that writes, in any thread: durable, overwriting what is deleted, and with the functions that
 * the tables' triggers call.
 */
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { LockgateError } from '../../../proto/errors.js';
import { dropSums } from '../file-sums.js';
import { closeUnopened } from './folder/wal-presence.js';
import { addUplinkSum } from './log/uplink-sum.js';
import { registerRowSum } from './row-sum.js';
import { registerUsernameKey } from './tables/people/username-key.js';

/** How SQLite reports `PRAGMA synchronous = FULL`. */
const SYNCHRONOUS_FULL = 2;
/** The size in bytes to which the WAL's file is truncated when it restarts. */
const WAL_BYTES_AFTER_RESTART = 64 * 1024 * 1024;

/**
 * WAL with synchronous FULL: a commit is on the disk when it returns. Asserted, since better-sqlite3 opens NORMAL. The
 * sums of a file at rest are removed first: they will not fit any more.
 *
 * @throws LockgateError `store-unsafe` where the file system can't give that
 */
export function openDurable(file: string): Database {
  dropSums(file);
  const db = new SqliteDatabase(file);
  try {
    return makeDurable(db, file);
  } catch (error) {
    closeUnopened(db, file);
    throw error;
  }
}

function makeDurable(db: Database, file: string): Database {
  const journal = db.pragma('journal_mode = WAL', { simple: true });
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  // Overwrites deleted content in the file instead of only freeing its space: positions must be erasable.
  db.pragma('secure_delete = ON');
  registerRowSum(db);
  registerUsernameKey(db);
  const synchronous = db.pragma('synchronous', { simple: true });
  // A WAL that grew long because of a slow reader becomes short again.
  db.pragma(`journal_size_limit = ${WAL_BYTES_AFTER_RESTART}`);
  addUplinkSum(db);
  if (journal === 'wal' && synchronous === SYNCHRONOUS_FULL) return db;
  throw new LockgateError(
    'store-unsafe',
    `${file} can't be made durable: expected journal mode wal and synchronous FULL, got ${journal} and ${synchronous}`,
  );
}

/** One durable transaction. @throws what SQLite throws; it is rolled back then */
export function inTransaction<T>(db: Database, work: () => T): T {
  return db.transaction(work).immediate();
}
