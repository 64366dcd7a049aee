/**
 * The simulator's only source of randomness: a small seeded generator, so that a run can be repeated from its seed.
 * Each part of a run forks its own generator by name. So a part that draws more numbers does not change another part.
 */

/**
 * sfc32 (Chris Doty-Humphrey's "small fast counting" generator): 128 bits of state, period about 2¹²⁷. The shift counts
 * in `uint32` are those of the published generator.
 */
export class Prng {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  /** The three hashes of the seed, with which {@link fork} goes on. They take the place of the seed's text. */
  readonly #seedA: number;
  readonly #seedB: number;
  readonly #seedC: number;

  /**
   * The same seed gives the same numbers, on every machine.
   *
   * @param parent if given, its seed is put before this one, with a slash between them
   */
  constructor(seed: string | number, parent?: Prng) {
    const text = String(seed);
    // Any three different numbers: these are the first bits of the golden ratio, of pi and of e.
    this.#a = hash(text, parent === undefined ? 0x9e3779b9 : hash('/', parent.#seedA));
    this.#b = hash(text, parent === undefined ? 0x243f6a88 : hash('/', parent.#seedB));
    this.#c = hash(text, parent === undefined ? 0xb7e15162 : hash('/', parent.#seedC));
    this.#seedA = this.#a;
    this.#seedB = this.#b;
    this.#seedC = this.#c;
    // Similar seeds start with similar numbers, so the first numbers are discarded.
    for (let round = 0; round < WARM_UP_ROUNDS; round++) this.uint32();
  }

  /** A generator for one part of a run. It depends on the seed and the name, not on the numbers drawn so far. */
  fork(name: string | number): Prng {
    return new Prng(name, this);
  }

  /** An integer from 0 to 2³²−1, uniformly distributed. */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** A number in [0, 1), with 32 bits of resolution. */
  fraction(): number {
    return this.uint32() / 2 ** 32;
  }

  /** A number in [from, to). */
  between(from: number, to: number): number {
    return from + (to - from) * this.fraction();
  }

  /** An integer from `from` to `to`, both included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.fraction() * (to - from + 1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** One of the items, uniformly distributed. `items` must not be empty. */
  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.fraction() * items.length)];
    if (item === undefined) throw new Error('the list to pick from is empty');
    return item;
  }
}

/** How many numbers are discarded at the start. */
const WARM_UP_ROUNDS = 12;

/** The prime of FNV-1a for 32 bits. */
const FNV_PRIME = 0x01000193;

/**
 * The FNV-1a hash of a text. `basis` is the start value; each word of the generator's state has a different one. The
 * hash of one text as the basis for another gives the hash of both texts together.
 */
function hash(text: string, basis: number): number {
  let value = basis;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), FNV_PRIME);
  }
  return value | 0;
}
