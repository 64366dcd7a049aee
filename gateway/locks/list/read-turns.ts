/**
 * Lets long reads take turns on the event loop: one slice of one read at a time, with a turn for other work after each.
 * So reads of many callers together delay a ping by one slice, however many there are (interfaces.md §2, Fairness).
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
   * @throws the signal's reason if it is aborted: nobody waits for the answer any more
   */
  async next(signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#isTurnTaken) this.#startNext();
    });
    signal?.throwIfAborted();
  }

  /**
   * Runs work that takes turns by itself, one after another: several at once would each take a part of every turn.
   *
   * @throws the signal's reason if it is aborted before the work starts; what the work throws
   */
  async alone<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.#lastAlone;
    let end = (): void => undefined;
    this.#lastAlone = new Promise((resolve) => {
      end = resolve;
    });
    try {
      await before;
      signal?.throwIfAborted();
      return await work();
    } finally {
      end();
    }
  }

  #startNext(): void {
    const first = this.#waiting.shift();
    this.#isTurnTaken = first !== undefined;
    if (first === undefined) return;
    first();
    // The slice runs in this turn; the next turn is for other work.
    afterThisTurn(() => afterThisTurn(() => this.#startNext()));
  }
}
