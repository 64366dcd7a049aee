/**
 * Makes large bodies wait, so that one is parsed in every other turn of the event loop. Parsing a mebibyte takes some
 * 20 ms, so several bodies that arrive together would otherwise block all other work for a multiple of that
 * (interfaces.md §2).
 */
import { afterThisTurn } from '../../../proto/clock.js';

/** Bodies of at least this size wait for a turn. */
const MIN_HEAVY_BYTES = 32 * 1024;

export class HeavyTurns {
  readonly #waiting: (() => void)[] = [];
  #isTurnTaken = false;

  /** Resolves when a body of this size may be parsed; at once for a small one. */
  async next(bytes: number): Promise<void> {
    if (bytes < MIN_HEAVY_BYTES) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      if (!this.#isTurnTaken) this.#startNext();
    });
  }

  #startNext(): void {
    const startParsing = this.#waiting.shift();
    this.#isTurnTaken = startParsing !== undefined;
    if (startParsing === undefined) return;
    startParsing();
    // Leaves one turn for other work.
    afterThisTurn(() => afterThisTurn(() => this.#startNext()));
  }
}
