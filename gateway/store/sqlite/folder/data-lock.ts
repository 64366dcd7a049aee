import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';

/** A lock on a data folder. */
export interface DataLock {
  release(): void;
}

/**
 * Locks the data folder for this process. Two gateways on one folder would each deliver every webhook.
 *
 * The lock is an SQLite file held in an exclusive transaction, which is a file lock of the kernel: it ends with the
 * process, however that ends, and a paused process keeps it. A file with a process id, or with a time that goes stale,
 * does neither (docs/decisions.md).
 *
 * @throws LockgateError `data-in-use` when another process holds it.
 */
export function lockData(file: string): DataLock {
  // Created here, so that no other user can read it.
  closeSync(openSync(file, 'a', 0o600));
  const holder = new Database(file, { timeout: 0 });
  try {
    holder.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    holder.close();
    if ((error as { code?: string }).code === 'SQLITE_BUSY')
      throw new LockgateError('data-in-use', `another gateway is running on this data folder (it holds ${file})`);
    throw error;
  }
  return { release: () => void holder.close() };
}
