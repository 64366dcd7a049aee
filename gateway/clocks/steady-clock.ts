/** A clock that starts at a given time and advances with the machine's monotonic clock. Only `set` makes it jump. */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';
import type { MachineClock } from './machine-clock.js';

export class SteadyClock implements Clock {
  readonly #machine: MachineClock;
  readonly #speed: number;
  /** The time to which it was set, ms since the epoch, and the monotonic clock's reading then, ms. */
  #setToMs: number;
  #setAtMonotonic: number;

  /** @param speed relative to the machine's monotonic clock */
  constructor(machine: MachineClock, startMs: number, speed = 1) {
    this.#machine = machine;
    this.#speed = speed;
    this.#setToMs = startMs;
    this.#setAtMonotonic = machine.monotonic();
  }

  now(): number {
    return Math.floor(this.#setToMs + (this.#machine.monotonic() - this.#setAtMonotonic) * this.#speed);
  }

  /** Calls `callback` once, after `delay` at the clock's speed. {@link set} does not change timers that already run. */
  after(delay: Milliseconds, callback: () => void): Timer {
    return this.#machine.after(delay / this.#speed, callback);
  }

  /** Sets the clock to `nowMs`, ms since the epoch. */
  set(nowMs: number): void {
    this.#setToMs = nowMs;
    this.#setAtMonotonic = this.#machine.monotonic();
  }
}
