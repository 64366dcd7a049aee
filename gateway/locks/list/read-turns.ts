/**
 * Lets long reads take turns on the event loop: one slice of one read at a time, and after each slice a turn for other
 * work. So the reads of all callers together delay a ping by one slice at most, however many callers there are
 * (interfaces.md §2, Fairness).
 */
import { afterThisTurn } from '../../../proto/clock.js';

export class ReadTurns {
  readonly #waiting: (() => void)[] = [];
  #isTurnTaken = false;
  /** Resolves when the last work of {@link alone} has ended. */
  #lastAlone: Promise<void> = Promise.resolve();

  /**
   * Resolves when the caller may read one slice, which should take at most a few milliseconds.
   *
   * @throws the signal's reason if it is aborted, since the caller has hung up
   */
  async next(signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#isTurnTaken) this.#startNext();
    });
    signal?.throwIfAborted();
  }

  /**
   * Runs work that divides itself into turns of the event loop. Only one such work runs at a time, since several
   * together would take a part each of every turn.
   *
   * @throws the signal's reason if it is aborted before the work starts; what the work throws
   */
  async alone<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const previous = this.#lastAlone;
    let end = (): void => undefined;
    this.#lastAlone = new Promise((resolve) => {
      end = resolve;
    });
    try {
      await previous;
      signal?.throwIfAborted();
      return await work();
    } finally {
      end();
    }
  }

  #startNext(): void {
    const startSlice = this.#waiting.shift();
    this.#isTurnTaken = startSlice !== undefined;
    if (startSlice === undefined) return;
    startSlice();
    // The slice runs in this turn; the next turn is for other work.
    afterThisTurn(() => afterThisTurn(() => this.#startNext()));
  }
}
