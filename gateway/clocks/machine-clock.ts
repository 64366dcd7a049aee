/** The machine's clocks: the date, which anybody may set, and the monotonic one, which nobody can. */
import { type Milliseconds, monotonicMs, systemClock, type Timer } from '../../proto/clock.js';

export interface MachineClock {
  /** The date, ms since the epoch. It may leap, either way. */
  wall(): number;
  /** A monotonic reading in ms, without relation to the date. */
  monotonic(): number;
  /** Calls `callback` once, `delay` from now by the monotonic clock. */
  after(delay: Milliseconds, callback: () => void): Timer;
}

/** This machine's. */
export const systemMachine: MachineClock = Object.freeze({
  wall: () => systemClock.now(),
  monotonic: monotonicMs,
  after: (delay, callback) => systemClock.after(delay, callback),
} satisfies MachineClock);
