/** Locks a data folder, so that only one process at a time writes to its store. */
import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';

/** A lock on a data folder. */
export interface DataLock {
  release(): void;
}

/**
 * Locks the data folder for this process. Without the lock, two gateways on one folder would each deliver every
 * webhook.
 *
 * The lock is an exclusive transaction on an SQLite file, which holds a file lock of the kernel. The kernel releases it
 * when the process exits for any reason, and a paused process still holds it. Neither is true of a file with a process
 * id or a timestamp (docs/decisions.md).
 *
 * @throws LockgateError `data-in-use` if another process holds the lock
 */
export function lockData(file: string): DataLock {
  // Created here with mode 600, so that no other user can read it.
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
