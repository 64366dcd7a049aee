/**
 * The database's time between two readings of it, carried on by this machine's monotonic clock. It never goes back: a
 * reading that is behind only slows it down. Pure: times are arguments, in ms.
 */
export class DatabaseTime {
  #readMs: number;
  #readAtMonotonicMs: number;
  #lastMs: number;

  /** @param nowMs the database's time @param monotonicMs this machine's monotonic clock when it was read */
  constructor(nowMs: number, monotonicMs: number) {
    this.#readMs = nowMs;
    this.#readAtMonotonicMs = monotonicMs;
    this.#lastMs = nowMs;
  }

  /** Notes another reading, for example of a beat. */
  note(nowMs: number, monotonicMs: number): void {
    this.#readMs = nowMs;
    this.#readAtMonotonicMs = monotonicMs;
  }

  /** The database's time, ms since the epoch. */
  at(monotonicMs: number): number {
    this.#lastMs = Math.max(this.#lastMs, this.#readMs + (monotonicMs - this.#readAtMonotonicMs));
    return this.#lastMs;
  }
}
