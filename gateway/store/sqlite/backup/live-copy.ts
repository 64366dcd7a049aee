/**
 * Copies of a running store for backups, one at a time, in the data folder. The receiver of a copy removes it after
 * use; the next start deletes a copy that a kill left.
 */
import path from 'node:path';
import { LockgateError } from '../../../../proto/errors.js';
import type { StoreCopy } from '../../contract/store-copy.js';
import { sumOfSums } from '../../file-sums.js';
import { copyInThread } from '../upkeep.js';
import { removeCopy } from './copy.js';

/** The copy's name in the data folder. */
const COPY_NAME = 'backup.part';

export class LiveCopies {
  readonly #from: string;
  readonly #to: string;
  readonly #stopped = new AbortController();
  #making: Promise<unknown> | undefined;
  #exists = false;

  /** @param file the store's file */
  constructor(file: string) {
    this.#from = file;
    this.#to = path.join(path.dirname(file), COPY_NAME);
    removeCopy(this.#to);
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
      removeCopy(this.#to);
      this.#exists = false;
    };
    try {
      const making = copyInThread(this.#from, this.#to, undefined, this.#stopped.signal);
      this.#making = making.catch(() => undefined);
      const sums = await making;
      return { file: this.#to, bytes: sums.bytes, sum: sumOfSums(sums), remove };
    } catch (error) {
      remove();
      throw error;
    }
  }

  /** Aborts a running copy. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#making;
    removeCopy(this.#to);
  }
}
