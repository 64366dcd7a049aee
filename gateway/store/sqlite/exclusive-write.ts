/**
 * A write in hand-written SQL: one transaction that waits for every earlier write to the store. The work runs on the
 * main thread and must be short.
 */
import type { Database } from 'better-sqlite3';
import { StoreFailure } from '../contract/errors.js';
import type { WriteMutex } from './write-mutex.js';

/** The connection that writes, and the mutex that guards it. */
export interface GuardedWriter {
  readonly mutex: WriteMutex;
  readonly writer: Database;
}

/**
 * Runs `work` in a transaction while no other write runs.
 *
 * @param action completes a failure's message "the store could not …", such as `record the key`
 * @returns what `work` returns, once it is on the disk
 * @throws StoreFailure if SQLite fails; otherwise what `work` throws. Nothing is changed then.
 */
export function writeExclusively<T>(
  { mutex, writer }: GuardedWriter,
  action: string,
  work: (db: Database) => T,
): Promise<T> {
  return mutex.runExclusive(() => {
    try {
      return writer.transaction(() => work(writer)).immediate();
    } catch (error) {
      if ((error as Error).name !== 'SqliteError') throw error;
      throw new StoreFailure(action, error);
    }
  });
}
