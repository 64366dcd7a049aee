/**
 * The database's time between two readings of it, continued by this machine's monotonic clock; the ids of uplinks are
 * made from it (clock-id.ts). It never goes back: after a reading that is behind, it stands still until the clock has
 * caught up. Reads no clock: times are arguments, in ms.
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

  /** Notes another reading, such as that of a beat, the gateway's regular sign of life in the database. */
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
