/**
 * The one way in which a connection that writes is opened: durable, forgetful of what is deleted, and with the function
 * that the tables' triggers call. A thread that writes opens its connection here too.
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
/** Bytes of the WAL's file that stay when it begins anew. */
const WAL_KEPT = 64 * 1024 * 1024;

/**
 * WAL with synchronous FULL: a commit is on the disk when it returns. Asserted, since better-sqlite3 opens NORMAL. The
 * sums of a file that was at rest are dropped first: they are not its own any more.
 *
 * @throws LockgateError `store-unsafe` where the file system can't give that
 */
export function openDurable(file: string): Database {
  dropSums(file);
  const db = new SqliteDatabase(file);
  try {
    return madeDurable(db, file);
  } catch (error) {
    closeUnopened(db, file);
    throw error;
  }
}

function madeDurable(db: Database, file: string): Database {
  const journal = db.pragma('journal_mode = WAL', { simple: true });
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  // What is deleted or overwritten is gone from the file, not merely let go of: positions are meant to be forgettable.
  db.pragma('secure_delete = ON');
  registerRowSum(db);
  registerUsernameKey(db);
  const synchronous = db.pragma('synchronous', { simple: true });
  // A WAL that once grew long, beside a reader that was slow, becomes short again.
  db.pragma(`journal_size_limit = ${WAL_KEPT}`);
  addUplinkSum(db);
  if (journal === 'wal' && synchronous === SYNCHRONOUS_FULL) return db;
  throw new LockgateError(
    'store-unsafe',
    `${file} can't be made durable: expected journal mode wal and synchronous FULL, got ${journal} and ${synchronous}`,
  );
}

/** One durable transaction. @throws what SQLite throws; nothing of it is kept */
export function inTransaction<T>(db: Database, work: () => T): T {
  return db.transaction(work).immediate();
}
