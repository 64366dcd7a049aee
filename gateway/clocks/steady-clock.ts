/** A clock that runs by the monotonic clock from where it was set, so that only its owner can make it leap. */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';
import type { MachineClock } from './machine-clock.js';

export class SteadyClock implements Clock {
  readonly #machine: MachineClock;
  readonly #speed: number;
  #setToMs: number;
  #setAt: number;

  /** `speed`: how many times as fast as the machine's monotonic clock it runs. */
  constructor(machine: MachineClock, startMs: number, speed = 1) {
    this.#machine = machine;
    this.#speed = speed;
    this.#setToMs = startMs;
    this.#setAt = machine.monotonic();
  }

  now(): number {
    return Math.floor(this.#setToMs + (this.#machine.monotonic() - this.#setAt) * this.#speed);
  }

  /** What waits already is not moved by {@link set}: it waits for as long as it was to wait when it was asked for. */
  after(delay: Milliseconds, callback: () => void): Timer {
    return this.#machine.after(delay / this.#speed, callback);
  }

  /** It is `nowMs` now, ms since the epoch. */
  set(nowMs: number): void {
    this.#setToMs = nowMs;
    this.#setAt = this.#machine.monotonic();
  }
}
