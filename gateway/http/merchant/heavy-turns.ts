/**
 * Large bodies are read one in each turn of the event loop: to read one of a mebibyte takes some 20 ms, and several
 * that arrived together would hold up everybody else for as long as all of them take (interfaces.md §2, Fairness).
 */
import { afterThisTurn } from '../../../proto/clock.js';

/** Bodies from so many bytes on wait for a turn. */
const HEAVY_BYTES = 32 * 1024;

export class HeavyTurns {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  /** Resolves when a body of so many bytes may be read; at once where it is small. */
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
    // Another turn is left to whatever else has arrived.
    afterThisTurn(() => afterThisTurn(() => this.#goOn()));
  }
}
