/**
 * What one lock reports as dropped because its buffer was full. The lock made those uplinks, but they never arrive, so
 * they do not count as missing. Does no I/O.
 */
import type { Uplink } from '../../wire/ping.js';

/** See the top of this file. */
export class DropReports {
  /** The newest boot, and the count that it has reported. */
  #boot = 0;
  #dropped = 0;
  /** The time of the uplink that last reported more dropped uplinks than before, ms since the epoch. */
  #reportedMs = Number.NEGATIVE_INFINITY;

  /** An uplink arrived. */
  see({ boot, dropped, timeMs }: Uplink): void {
    if (boot > this.#boot) {
      this.#boot = boot;
      this.#dropped = 0;
    }
    if (boot < this.#boot || dropped <= this.#dropped) return;
    this.#dropped = dropped;
    this.#reportedMs = Math.max(this.#reportedMs, timeMs);
  }

  /** Whether an uplink that was due at `dueMs` may have been dropped. */
  explain(dueMs: number): boolean {
    return this.#reportedMs >= dueMs;
  }
}
