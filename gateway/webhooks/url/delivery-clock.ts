/**
 * The clock that deliveries wait by ("delivery clock"). It starts at wall-clock time when the gateway starts and
 * follows the monotonic clock from there, so a change of the machine's clock neither delays nor hastens a delivery
 * (interfaces.md §3). Due times in the store are by this clock. Dates for people and receivers are wall-clock time.
 */
import { type Clock, type Milliseconds, RunClock, Seconds, systemClock, type Timer } from '../../../proto/clock.js';

/** A smaller difference between the two clocks is rounding, not a change of the machine's clock. */
const MAX_ROUNDING: Milliseconds = Seconds(1);

export class DeliveryClock implements Clock {
  /** The wall clock, which may jump. */
  readonly wall: Clock;
  readonly #steady: Clock;

  /** @param steady starts at the present wall-clock time and never jumps */
  constructor(wall: Clock = systemClock, steady: Clock = new RunClock(wall.now())) {
    this.wall = wall;
    this.#steady = steady;
  }

  now(): number {
    return this.#steady.now();
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    return this.#steady.after(delay, callback);
  }

  /** Converts a time of this clock to wall-clock time, by the present difference of the two clocks. */
  formatDate(atMs: number): number {
    const difference = this.wall.now() - this.now();
    return Math.abs(difference) < MAX_ROUNDING ? atMs : atMs + difference;
  }
}
