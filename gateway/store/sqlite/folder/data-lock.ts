import { closeSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';

/** Holds a data folder for one gateway. */
export interface DataLock {
  release(): void;
}

/**
 * Takes the data folder for this process. Two gateways on one folder would each deliver every webhook.
 *
 * The lock is an SQLite file held in an exclusive transaction: the operating system lets go of it when the process
 * ends, however it ends, so a kill -9 leaves nothing to clean up, which a file with a process id in it would.
 *
 * @throws LockgateError `data-in-use` when another process holds it.
 */
export function lockData(file: string): DataLock {
  // Made here, so that it is nobody else's to read.
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
