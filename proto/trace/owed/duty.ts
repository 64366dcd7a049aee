/**
 * A duty: an uplink that a lock must make because of a `world` event (which records what truly happened around the
 * lock), with the times between which the lock must make it. Also the tolerances of the rule `owed`. Pure.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../clock.js';
import type { TriggerName } from '../../power/model.js';
import type { LockState, Uplink } from '../../wire/ping.js';

/** How much later than the model says an uplink may be made. */
export const SLACK: Milliseconds = Seconds(30);
/** How much earlier than the `world` event an uplink may be made, because clocks differ. */
export const EARLY: Milliseconds = Seconds(30);
/** How much longer than the model says a receiver may search under an open sky. */
export const FIX_SLACK: Milliseconds = Seconds(15);
/** GPS pings of a theft or ride count as missing if this many in a row do not come. */
export const MISSED_GPS_PINGS = 3;
/**
 * An uplink is missing if the lock could have sent it for this long. It is longer than network faults that neither
 * trace nor truth shows (up to 20 min) together with the time between two attempts to connect (up to 6 min).
 */
export const PATIENCE: Milliseconds = Hours(1);
/** A motion must last longer than this to be a ride; sensors differ in how soon they notice. */
export const MIN_RIDE: Milliseconds = Seconds(6);
/** How soon after a connect the ping that reports a reset must be made. */
export const RESET_WITHIN: Milliseconds = Minutes(1);

/** The `world` event because of which an uplink must be made. */
export interface WorldCause {
  /** The number of its line in the truth. */
  readonly line: number;
  /** Ms since the epoch. */
  readonly atMs: number;
  /** Its members, such as `moving true`. */
  readonly text: string;
}

/** The same event as a finding shows it. */
export interface OwedCause {
  /** The number of its line in the truth. */
  readonly line: number;
  /** When it happened, RFC 3339. */
  readonly at: string;
  /** Its members, such as `moving true`. */
  readonly event: string;
}

/** A change of the lock state by an event of the world. */
export interface ShackleChange {
  readonly to: LockState;
  /** Since when the lock was in the state before, ms since the epoch. */
  readonly sinceMs: number;
}

/** See the top of this file. */
export interface Duty {
  readonly trigger: TriggerName;
  readonly kind: 'cellular' | 'gps';
  /** The ping may have any of these reasons. The first is the expected one. */
  readonly reasons: readonly string[];
  /** The lock state that the ping must carry; null for any. */
  readonly lockState: LockState | null;
  /** Between these moments the uplink must be made, by the lock's clock; ms since the epoch. */
  readonly fromMs: number;
  /** Infinity where the end is not known yet. */
  byMs: number;
  /** The change of the lock state that makes it due; left out for other duties. */
  readonly change?: ShackleChange;
  /** If the cause (such as a motion) ends before this, the uplink need not be made. */
  readonly maturesMs: number;
  readonly cause: WorldCause;
  /** Shared by the duties of one theft or ride, of which only the first missed one becomes a finding. */
  readonly group: { isReported: boolean };
}

/** Whether an uplink fulfils a duty. */
export function fulfils({ timeMs, body }: Uplink, duty: Duty): boolean {
  if (body.kind !== duty.kind || !duty.reasons.includes(body.reason)) return false;
  if (duty.lockState !== null && body.lockState !== duty.lockState) return false;
  return timeMs >= duty.fromMs - EARLY && timeMs <= duty.byMs;
}

/**
 * Whether an uplink shows that the change of the lock state was none: the lock had that state before, because a command
 * had moved the shackle.
 */
export function isNoChange({ timeMs, body }: Uplink, { change, fromMs }: Duty): boolean {
  if (change === undefined || body.kind === 'ack' || body.lockState !== change.to) return false;
  return timeMs > change.sinceMs && timeMs < fromMs;
}
