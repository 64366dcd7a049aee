/** The system clock and the time that the gateway trusts, as the operators' interface shows them. Pure. */
import { Type } from 'typebox';
import { formatDate, isDatable } from '../../../../proto/wire/ping-json.js';
import { CLOCK_STATES, type ClockReading } from '../../../clocks/clock-guard.js';
import { Count, MaybeTime, OneOf, OrNull } from '../schemas.js';

/** The schema of {@link clockJson}. */
export const ClockAnswer = Type.Object({
  state: OneOf(CLOCK_STATES),
  /** What the system clock says. */
  machine: MaybeTime,
  /** The time that the gateway trusts. */
  confirmed: MaybeTime,
  /** Since when the two disagree; null if they agree. */
  since: MaybeTime,
  /**
   * How many locks' clocks have agreed with the system clock since then, and how many must for the gateway to trust it.
   */
  locks_agreeing: Count,
  locks_needed: OrNull(Type.Integer()),
});

/** The speed of the run's clock (wall-clock time, except in a sped-up simulation). */
export const RunSpeed = Type.Number({
  exclusiveMinimum: 0,
  description: 'Seconds by which run_clock advances per second of real time: 1, or more in a demonstration.',
});

/** The JSON form of a reading of the clock; a time whose year has no date form becomes null. */
export function clockJson({ state, machineMs, confirmedMs, sinceMs, agreeing, needed }: ClockReading) {
  const dateOf = (timeMs: number | null): string | null =>
    timeMs === null || !isDatable(timeMs) ? null : formatDate(timeMs);
  return {
    state,
    machine: dateOf(machineMs),
    confirmed: dateOf(confirmedMs),
    since: dateOf(sinceMs),
    locks_agreeing: agreeing,
    locks_needed: needed,
  };
}
