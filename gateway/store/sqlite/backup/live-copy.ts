/**
 * The copies that a running store makes of itself: one at a time, in its own folder, to be sent and removed. What a
 * kill leaves of one is removed by the next start.
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
  #isTaken = false;

  /** @param file the store's */
  constructor(file: string) {
    this.#from = file;
    this.#to = path.join(path.dirname(file), COPY_NAME);
    removeCopy(this.#to);
  }

  /**
   * Copies the store as of now.
   *
   * @throws LockgateError `backup-exists` while there is another, `no-room`, `stopping`
   */
  async make(): Promise<StoreCopy> {
    if (this.#isTaken) throw new LockgateError('backup-exists', 'a backup is being made already: one at a time');
    this.#isTaken = true;
    const remove = (): void => {
      removeCopy(this.#to);
      this.#isTaken = false;
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

  /** Aborts a copy that is being made. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#making;
    removeCopy(this.#to);
  }
}
