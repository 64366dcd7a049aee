/**
 * Makes copies of a running store for backups, one at a time, in the data folder. The receiver of a copy removes it
 * after use; if the gateway is killed before, the next start deletes the copy.
 */
import path from 'node:path';
import { LockgateError } from '../../../../proto/errors.js';
import type { StoreCopy } from '../../contract/store-copy.js';
import { sumOfSums } from '../../file-sums.js';
import { copyInThread } from '../upkeep/upkeep.js';
import { removeCopy } from './copy.js';

/** The copy's name in the data folder. */
const COPY_NAME = 'backup.part';

export class LiveCopies {
  readonly #storeFile: string;
  readonly #copyFile: string;
  readonly #stopped = new AbortController();
  #making: Promise<unknown> | undefined;
  /** Whether a copy exists or is being made. */
  #exists = false;

  /** @param file the store's file */
  constructor(file: string) {
    this.#storeFile = file;
    this.#copyFile = path.join(path.dirname(file), COPY_NAME);
    removeCopy(this.#copyFile);
  }

  /**
   * Copies the store as of now.
   *
   * @throws LockgateError `backup-exists` while there is another copy, `no-room`, `stopping`
   */
  async make(): Promise<StoreCopy> {
    if (this.#exists)
      throw new LockgateError('backup-exists', 'another backup is being made; only one at a time is possible');
    this.#exists = true;
    const remove = (): void => {
      removeCopy(this.#copyFile);
      this.#exists = false;
    };
    try {
      const making = copyInThread(this.#storeFile, this.#copyFile, undefined, this.#stopped.signal);
      // For `stop`, which only waits; the caller gets the error below.
      this.#making = making.catch(() => undefined);
      const sums = await making;
      return { file: this.#copyFile, bytes: sums.bytes, sum: sumOfSums(sums), remove };
    } catch (error) {
      remove();
      throw error;
    }
  }

  /** Aborts a running copy. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#making;
    removeCopy(this.#copyFile);
  }
}
