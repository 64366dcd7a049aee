/**
 * The clock that deliveries wait by. It starts at wall-clock time when the gateway starts and follows the monotonic
 * clock from there: setting the machine's clock neither delays a delivery nor hurries it (interfaces.md §3). Due times
 * in the store are by this clock. Dates for people and receivers are wall-clock time.
 */
import { type Clock, type Milliseconds, RunClock, Seconds, systemClock, type Timer } from '../../../proto/clock.js';

/** Clocks less than this apart were not set: the difference is rounding. */
const NOT_SET: Milliseconds = Seconds(1);

export class DeliveryClock implements Clock {
  /** The wall clock, which may jump. */
  readonly wall: Clock;
  readonly #steady: Clock;

  /** `steady` runs on without jumps from the present wall-clock time. */
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

  /** The wall-clock time, as that clock is set now, of a time by this clock. */
  toDate(atMs: number): number {
    const apart = this.wall.now() - this.now();
    return Math.abs(apart) < NOT_SET ? atMs : atMs + apart;
  }
}
