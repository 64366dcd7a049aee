/**
 * A repeatable random generator: mulberry32, 32 bits of state. The same seed gives the same numbers, so that the seed
 * of a failed run repeats the failure.
 */
import { randomInt } from 'node:crypto';

const SEED_LIMIT = 2 ** 31;

/** Draws random numbers from a seed. */
export class SeededChance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number in [0, 1). The constants are mulberry32's. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number in [minimum, limit). */
  between(minimum: number, limit: number): number {
    return minimum + Math.floor(this.next() * (limit - minimum));
  }

  /** One of the choices, all with the same probability. */
  pick<T>(choices: readonly T[]): T {
    return choices[this.between(0, choices.length)] as T;
  }
}

/** The seed in the environment variable LOCKGATE_SEED, or a new one. */
export function chooseSeed(): number {
  const given = process.env.LOCKGATE_SEED;
  return given === undefined ? randomInt(SEED_LIMIT) : Number(given);
}
