/** A machine whose clocks are turned by hand: time passes on both, and the date can be set by itself. */
import type { MachineClock } from '../../../gateway/clocks/machine-clock.js';
import { ManualClock, type Milliseconds, type Timer } from '../../../proto/clock.js';

export class ManualMachine implements MachineClock {
  readonly #time = new ManualClock();
  #offMs: number;

  /** Its date is `startMs`, ms since the epoch. */
  constructor(startMs: number) {
    this.#offMs = startMs;
  }

  wall(): number {
    return this.#time.now() + this.#offMs;
  }

  monotonic(): number {
    return this.#time.now();
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    return this.#time.after(delay, callback);
  }

  /** How many callbacks wait. */
  get pending(): number {
    return this.#time.pending;
  }

  /** Time passes. */
  advance(span: Milliseconds): void {
    this.#time.advance(span);
  }

  /** Somebody sets the date, forward or back. */
  step(by: Milliseconds): void {
    this.#offMs += by;
  }
}
