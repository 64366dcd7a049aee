/**
 * Opens writing connections. Every connection that writes, in any thread, must be opened here: commits are durable,
 * deleted content is overwritten, and the SQL functions that the store's triggers call, for example for checksums of
 * rows, are registered.
 */
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { LockgateError } from '../../../proto/errors.js';
import { dropSums } from '../file-sums.js';
import { closeUnopened } from './folder/wal-presence.js';
import { addUplinkSum } from './log/uplink-sum-function.js';
import { registerRowChecksum } from './row-checksum.js';
import { registerUsernameKey } from './tables/people/username-key.js';

/** How SQLite reports `PRAGMA synchronous = FULL`. */
const SYNCHRONOUS_FULL = 2;
/** The size in bytes to which the WAL's file is truncated when it restarts. */
const WAL_BYTES_AFTER_RESTART = 64 * 1024 * 1024;

/**
 * Opens a file in WAL mode with synchronous FULL: a commit is on the disk when it returns. Both settings are verified,
 * since better-sqlite3 defaults to NORMAL. The file's checksums (`.sums`) are deleted first, since writes make them
 * wrong.
 *
 * @throws LockgateError `store-unsafe` if the file system does not support that
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

/** Sets and verifies the settings of a writing connection. */
function makeDurable(db: Database, file: string): Database {
  const journal = db.pragma('journal_mode = WAL', { simple: true });
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  // Overwrites deleted content in the file instead of only freeing its space: positions must be erasable.
  db.pragma('secure_delete = ON');
  registerRowChecksum(db);
  registerUsernameKey(db);
  const synchronous = db.pragma('synchronous', { simple: true });
  // Truncates a WAL that grew long because of a slow reader.
  db.pragma(`journal_size_limit = ${WAL_BYTES_AFTER_RESTART}`);
  addUplinkSum(db);
  if (journal === 'wal' && synchronous === SYNCHRONOUS_FULL) return db;
  throw new LockgateError(
    'store-unsafe',
    `${file} can't be made durable: expected journal mode wal and synchronous FULL, got ${journal} and ${synchronous}`,
  );
}

/** Runs `work` in one durable transaction. @throws SQLite's error, after a rollback */
export function inTransaction<T>(db: Database, work: () => T): T {
  return db.transaction(work).immediate();
}
