/**
 * A duty: an uplink that a lock owes for an event of the world, with the times between which it must be made. The
 * tolerances are here too. This file judges nothing.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../clock.js';
import type { TriggerName } from '../../power/model.js';
import type { LockState, Uplink } from '../../wire/ping.js';

/** How much later than the model says an uplink may be made. */
export const SLACK: Milliseconds = Seconds(30);
/** How much earlier than the event of the world an uplink may be made: clocks differ. */
export const EARLY: Milliseconds = Seconds(30);
/** A receiver with an open sky has a fix after the model's time and this. */
export const FIX_SLACK: Milliseconds = Seconds(15);
/** GPS pings of a theft or ride are missing where so many in a row are. */
export const MISSED_GPS_PINGS = 3;
/**
 * A lock that could send all the time, and sent nothing, does not send any more. Faults of the network that neither
 * trace nor truth shows last up to 20 min, and retries are up to 6 min apart.
 */
export const PATIENCE: Milliseconds = Hours(1);
/** A motion must last longer than this to be a ride; sensors differ in how soon they notice. */
export const MIN_RIDE: Milliseconds = Seconds(6);
/** From a connect to the ping that reports a reset. */
export const RESET_WITHIN: Milliseconds = Minutes(1);

/** The event of the world that a finding names. */
export interface WorldCause {
  /** The number of its line in the truth. */
  readonly line: number;
  /** Ms since the epoch. */
  readonly atMs: number;
  /** Its members, such as `moving true`. */
  readonly text: string;
}

/** The event of the world in a finding. */
export interface OwedCause {
  /** The number of its line in the truth. */
  readonly line: number;
  /** When it happened, RFC 3339. */
  readonly at: string;
  /** Its members, such as `moving true`. */
  readonly event: string;
}

export interface Duty {
  readonly trigger: TriggerName;
  readonly kind: 'cellular' | 'gps';
  /** The reasons that fulfil it. The first is the expected one. */
  readonly reasons: readonly string[];
  /** The lock state that the ping must carry; null for any. */
  readonly lockState: LockState | null;
  /** Between these moments the uplink must be made, by the lock's clock; ms since the epoch. */
  readonly fromMs: number;
  /** Infinity where the end is not known yet. */
  byMs: number;
  /** If what makes it due ends before this, nothing is owed. */
  readonly maturesMs: number;
  readonly cause: WorldCause;
  /** The duties of one theft or ride have one: only the first that is missed becomes a finding. */
  readonly group: { isReported: boolean };
}

/** Whether an uplink fulfils a duty. */
export function fulfils({ timeMs, body }: Uplink, duty: Duty): boolean {
  if (body.kind !== duty.kind || !duty.reasons.includes(body.reason)) return false;
  if (duty.lockState !== null && body.lockState !== duty.lockState) return false;
  return timeMs >= duty.fromMs - EARLY && timeMs <= duty.byMs;
}
