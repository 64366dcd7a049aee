/**
 * Adds counted usage, each addition once. Counts have no key by which a repeat would be recognised, so an addition has
 * a number, which is stored with it. If its answer is lost, nobody knows whether it was stored, or still may be: it is
 * *in doubt*, and made again under the same number before any other.
 */
import { StoreFailure } from '../../contract/errors.js';
import type { UsageWrite } from '../../tables/table-parts.js';
import { isDefinite } from '../log/commit-outcome.js';
import type { Claim } from '../node-claim.js';
import { plannedOnce } from '../sql.js';
import type { Writes } from '../writes.js';
import { addUsage } from './batched-writes.js';

const MARK_ADDITION = plannedOnce(
  `INSERT INTO usage_mark AS m (slot, epoch, n) VALUES (@slot, @epoch, @n)
   ON CONFLICT (slot) DO UPDATE SET epoch = excluded.epoch, n = excluded.n
   WHERE m.epoch <> excluded.epoch OR m.n < excluded.n`,
);

export class UsageAdds {
  readonly #writes: Pick<Writes, 'run'>;
  readonly #claim: Pick<Claim, 'slot' | 'epoch'>;
  /** The number of the last addition that is stored for certain. */
  #n = 0;
  /** The addition after it, if it is in doubt. */
  #doubtful: UsageWrite | undefined;
  /** Additions run one after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(writes: Pick<Writes, 'run'>, claim: Pick<Claim, 'slot' | 'epoch'>) {
    this.#writes = writes;
    this.#claim = claim;
  }

  /** Whether an addition was taken that may not be stored yet. */
  get isInDoubt(): boolean {
    return this.#doubtful !== undefined;
  }

  /**
   * Adds counts. Resolves when they are stored, or in doubt: then this object adds them again, not the caller.
   *
   * @throws StoreFailure if they are certainly not stored: the caller may add them again
   */
  add(write: UsageWrite): Promise<void> {
    return this.#inTurn(async () => {
      await this.#settle();
      try {
        await this.#store(write);
      } catch (error) {
        if (isDefinite(error instanceof StoreFailure ? error.cause : error)) throw error;
        this.#doubtful = write;
      }
    });
  }

  /** Makes an addition that is in doubt again. @throws StoreFailure if it still is in doubt */
  settle(): Promise<void> {
    return this.#inTurn(() => this.#settle());
  }

  async #settle(): Promise<void> {
    if (this.#doubtful === undefined) return;
    await this.#store(this.#doubtful);
    this.#doubtful = undefined;
  }

  async #store(write: UsageWrite): Promise<void> {
    const { slot, epoch } = this.#claim;
    const n = this.#n + 1;
    await this.#writes.run('add usage', async (sql) => {
      // Waits for an addition with a lost answer that is still under way, and changes nothing if that is stored.
      const marked = await sql.run(MARK_ADDITION, { slot, epoch, n });
      if (marked > 0) await addUsage(sql, write);
    });
    this.#n = n;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
