/**
 * The time by which deliveries wait. It begins where the wall's clock stands when the gateway starts, and rests on the
 * monotonic clock from there: somebody who sets the machine's clock neither holds up a delivery nor hurries it
 * (interfaces.md §3). Due times in the store are by this time. Dates for people and receivers are the wall's.
 */
import { type Clock, type Milliseconds, RunClock, Seconds, systemClock, type Timer } from '../../../proto/clock.js';

/** Clocks that are apart by less than this were not set: what is between them is rounding. */
const NOT_SET: Milliseconds = Seconds(1);

export class DeliveryClock implements Clock {
  /** The clock of dates, which may leap. */
  readonly wall: Clock;
  readonly #steady: Clock;

  /** `steady` goes on without leaps from where the wall's clock stands now. */
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

  /** The date, by the wall's clock as it stands now, of a time by this one. */
  toDate(atMs: number): number {
    const apart = this.wall.now() - this.now();
    return Math.abs(apart) < NOT_SET ? atMs : atMs + apart;
  }
}
