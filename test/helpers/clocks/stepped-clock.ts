/** A clock that a test sets forward or back: its dates jump, but running timers are not affected. */
import type { Clock, ManualClock, Milliseconds, Timer } from '../../../proto/clock.js';

export class SteppedClock implements Clock {
  readonly #steady: ManualClock;
  #offset: Milliseconds = 0;

  /** @param steady a manual clock, which runs this clock's timers */
  constructor(steady: ManualClock) {
    this.#steady = steady;
  }

  now(): number {
    return this.#steady.now() + this.#offset;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    return this.#steady.after(delay, callback);
  }

  /** Sets the clock forward by `by`, or back if negative. */
  step(by: Milliseconds): void {
    this.#offset += by;
  }
}
