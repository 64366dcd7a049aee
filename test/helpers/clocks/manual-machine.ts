/**
 * A machine with two manual clocks, the date and the monotonic clock: `advance` moves both, `step` changes only the
 * date.
 */
import type { MachineClock } from '../../../gateway/clocks/machine-clock.js';
import { ManualClock, type Milliseconds, type Timer } from '../../../proto/clock.js';

/** The machine, for code that takes a `MachineClock`. */
export class ManualMachine implements MachineClock {
  readonly #time = new ManualClock();
  #dateOffsetMs: number;

  /** @param startMs the date at the start, ms since the epoch */
  constructor(startMs: number) {
    this.#dateOffsetMs = startMs;
  }

  wall(): number {
    return this.#time.now() + this.#dateOffsetMs;
  }

  monotonic(): number {
    return this.#time.now();
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    return this.#time.after(delay, callback);
  }

  /** The number of timers that have not fired. */
  get pending(): number {
    return this.#time.pending;
  }

  /** Advances both clocks. */
  advance(span: Milliseconds): void {
    this.#time.advance(span);
  }

  /** Sets the date forward by `by`, or back if negative. */
  step(by: Milliseconds): void {
    this.#dateOffsetMs += by;
  }
}
