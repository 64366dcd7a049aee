/**
 * Orders the output of locks that are simulated one after another as if one clock had run all of them together. Without
 * this order a fleet's trace would depend on how the fleet was simulated.
 *
 * A *firing* is a lock's timer that ran. One clock runs timers by their due times, and those with the same due time in
 * the order in which they were set. A lock that is simulated by itself has one timer, and sets it during its previous
 * firing. So of two locks whose timers are due together, the one whose previous firing came first comes first.
 *
 * The firings of all locks for a chunk of time are noted, lock after lock, and then read in order of time.
 */

/** The first capacity of a log, in firings. */
const FIRST_CAPACITY = 4096;

/** Firings as lists of numbers, in the order in which they were noted. */
export interface FiringColumns {
  readonly dueMs: Float64Array<ArrayBuffer>;
  readonly lock: Int32Array<ArrayBuffer>;
  readonly start: Float64Array<ArrayBuffer>;
}

/** See the top of this file. */
export class FiringLog {
  #count = 0;
  #dueMs = new Float64Array(FIRST_CAPACITY);
  #lock = new Int32Array(FIRST_CAPACITY);
  /** Where the output of each firing starts, as an offset in the caller's buffer. */
  #start = new Float64Array(FIRST_CAPACITY);
  /** The place of each lock's last firing among all firings. At first, the order in which the locks are started. */
  readonly #lastPlaces: Float64Array;
  #nextPlace: number;

  constructor(locks: number) {
    this.#lastPlaces = Float64Array.from({ length: locks }, (_, lock) => lock);
    this.#nextPlace = locks;
  }

  /**
   * Notes a firing of the lock with this index. The firings of a lock must be noted in order of time.
   *
   * @param start where the output of the firing starts, as an offset in the caller's buffer
   */
  note(lock: number, dueMs: number, start: number): void {
    const firing = this.#count++;
    if (firing === this.#dueMs.length) this.#grow();
    this.#dueMs[firing] = dueMs;
    this.#lock[firing] = lock;
    this.#start[firing] = start;
  }

  /** Takes the firings out of this log, for another one. */
  take(): FiringColumns {
    const count = this.#count;
    this.#count = 0;
    return {
      dueMs: this.#dueMs.slice(0, count),
      lock: this.#lock.slice(0, count),
      start: this.#start.slice(0, count),
    };
  }

  /** Notes firings that another log had. `offset` is added to where each output starts, since the buffer is another. */
  noteAll({ dueMs, lock, start }: FiringColumns, offset: number): void {
    const first = this.#count;
    this.#count += dueMs.length;
    while (this.#count > this.#dueMs.length) this.#grow();
    this.#dueMs.set(dueMs, first);
    this.#lock.set(lock, first);
    for (let firing = 0; firing < start.length; firing++)
      this.#start[first + firing] = offset + (start[firing] as number);
  }

  /** Where the output of the first firing that was noted starts; `end` without a firing. */
  firstStart(end: number): number {
    return this.#count === 0 ? end : (this.#start[0] as number);
  }

  /**
   * Reads the firings of a chunk in order, and forgets them.
   *
   * @param end where the output of the last firing ends
   * @param read called with where the output of each firing starts and ends
   */
  readInOrder(end: number, read: (start: number, end: number) => void): void {
    const count = this.#count;
    this.#count = 0;
    const starts = this.#start;
    const readFiring = (firing: number): void => {
      this.#lastPlaces[this.#lock[firing] as number] = this.#nextPlace++;
      const start = starts[firing] as number;
      const next = firing + 1 === count ? end : (starts[firing + 1] as number);
      if (next > start) read(start, next);
    };
    const order = this.#byDueTime(count);
    for (let index = 0; index < count; ) {
      const firing = order[index] as number;
      let after = index + 1;
      while (after < count && this.#dueMs[order[after] as number] === this.#dueMs[firing]) after++;
      if (after === index + 1) readFiring(firing);
      else this.#readDueTogether(order.subarray(index, after), readFiring);
      index = after;
    }
  }

  /** The firings by their due times; those with the same due time by lock. */
  #byDueTime(count: number): Float64Array {
    let firstMs = Number.POSITIVE_INFINITY;
    for (let firing = 0; firing < count; firing++) firstMs = Math.min(firstMs, this.#dueMs[firing] as number);
    // One number has both the time and the firing, so that the numbers can be sorted without a function that compares.
    // It is exact, below 2⁵³: a chunk lasts at most a week, under 2³⁰ ms, which leaves room for 2²³ firings.
    let radix = 1;
    while (radix < count) radix *= 2;
    const keys = new Float64Array(count);
    for (let firing = 0; firing < count; firing++)
      keys[firing] = ((this.#dueMs[firing] as number) - firstMs) * radix + firing;
    keys.sort();
    for (let index = 0; index < count; index++) {
      const key = keys[index] as number;
      keys[index] = key - Math.floor(key / radix) * radix;
    }
    return keys;
  }

  /**
   * Reads firings with the same due time: first the first one of each lock, then in the same way the later ones, of
   * locks that set their timer to the same millisecond again.
   */
  #readDueTogether(firings: Float64Array, readFiring: (firing: number) => void): void {
    const firsts: number[] = [];
    const others: number[] = [];
    for (let index = 0; index < firings.length; index++) {
      const firing = firings[index] as number;
      const isSameLock = index > 0 && this.#lock[firing] === this.#lock[firings[index - 1] as number];
      (isSameLock ? others : firsts).push(firing);
    }
    const placeOf = (firing: number): number => this.#lastPlaces[this.#lock[firing] as number] as number;
    firsts.sort((a, b) => placeOf(a) - placeOf(b));
    for (const firing of firsts) readFiring(firing);
    if (others.length > 0) this.#readDueTogether(Float64Array.from(others), readFiring);
  }

  #grow(): void {
    const doubled = <Numbers extends Float64Array | Int32Array>(numbers: Numbers, larger: Numbers): Numbers => {
      larger.set(numbers);
      return larger;
    };
    const capacity = 2 * this.#dueMs.length;
    this.#dueMs = doubled(this.#dueMs, new Float64Array(capacity));
    this.#lock = doubled(this.#lock, new Int32Array(capacity));
    this.#start = doubled(this.#start, new Float64Array(capacity));
  }
}
