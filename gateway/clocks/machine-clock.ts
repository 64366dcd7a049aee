/** The machine's clocks: the date, which can be set at any time, and the monotonic clock, which can't be set. */
import { type Milliseconds, monotonicMs, systemClock, type Timer } from '../../proto/clock.js';

export interface MachineClock {
  /** The date, ms since the epoch. It may jump forward or back. */
  wall(): number;
  /** A monotonic reading in ms, unrelated to the date. */
  monotonic(): number;
  /** Calls `callback` once, `delay` from now by the monotonic clock. */
  after(delay: Milliseconds, callback: () => void): Timer;
}

/** The clocks of this machine. */
export const systemMachine: MachineClock = Object.freeze({
  wall: () => systemClock.now(),
  monotonic: monotonicMs,
  after: (delay, callback) => systemClock.after(delay, callback),
} satisfies MachineClock);
