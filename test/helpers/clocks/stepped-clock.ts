/** A clock that somebody sets while it runs: dates leap, and waits go on as if nothing had happened. */
import type { Clock, ManualClock, Milliseconds, Timer } from '../../../proto/clock.js';

export class SteppedClock implements Clock {
  readonly #steady: ManualClock;
  #offset: Milliseconds = 0;

  /** `steady` is turned by hand, and its timers are this clock's. */
  constructor(steady: ManualClock) {
    this.#steady = steady;
  }

  now(): number {
    return this.#steady.now() + this.#offset;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    return this.#steady.after(delay, callback);
  }

  /** Sets the clock forward by `by`, or back where it is negative. */
  step(by: Milliseconds): void {
    this.#offset += by;
  }
}
