/**
 * Reads large bodies one per turn of the event loop. Parsing a mebibyte takes some 20 ms, and several that arrive
 * together would block everyone else for the sum of that (interfaces.md §2, Fairness).
 */
import { afterThisTurn } from '../../../proto/clock.js';

/** Bodies of at least so many bytes wait for a turn. */
const HEAVY_BYTES = 32 * 1024;

export class HeavyTurns {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  /** Resolves when a body of so many bytes may be read; at once if it is small. */
  async next(bytes: number): Promise<void> {
    if (bytes < HEAVY_BYTES) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#isTaken) this.#goOn();
    });
  }

  #goOn(): void {
    const first = this.#waiting.shift();
    this.#isTaken = first !== undefined;
    if (first === undefined) return;
    first();
    // Leaves a turn to whatever else has arrived.
    afterThisTurn(() => afterThisTurn(() => this.#goOn()));
  }
}
