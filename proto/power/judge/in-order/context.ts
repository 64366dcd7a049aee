/**
 * The context: what the in-order rules (in-order-rules.ts) know from earlier uplinks when they judge the next one. It
 * belongs to a *stretch*, a series of uplinks of one boot without a missing sequence number. Plain data that survives
 * JSON. Times are by the lock's clock, ms since the epoch; instead of a missing time there is {@link NEVER}, which is
 * later than every time, or −{@link NEVER}, which is earlier.
 *
 * In a stretch that starts with sequence 1, everything since the boot is known. In any other stretch, what came before
 * its first uplink is unknown, and unknown uplinks never break a rule.
 */
import type { LockState, Position } from '../../../wire/ping.js';
import type { EffectiveState } from '../../model.js';
import { NEVER } from '../state.js';

/** A position that a lock reported. */
export interface PlacedPing {
  latitudeDegrees: number;
  longitudeDegrees: number;
  uncertaintyMeters: number;
  /** When the ping was made, and its sequence number. */
  timeMs: number;
  sequence: number;
}

/** A cellular ping after which a GPS ping is due. */
export interface AwaitedGps {
  /** The cellular ping's time, sequence number and lock state. */
  timeMs: number;
  sequence: number;
  lockState: LockState;
}

/** The reasons of the GPS pings of a run. */
export type RunReason = 'REASON_THEFT' | 'REASON_UNLOCKED_PING';

/**
 * A run: GPS pings with one reason, each soon after the one before (gps-run.ts). While it lasts, the lock must also
 * send a cellular ping now and then: REASON_THEFT in a run of REASON_THEFT, REASON_UNLOCKED_MOVEMENT in one of
 * REASON_UNLOCKED_PING. Each of those *refreshes* the run. Times are by the lock's clock. Mutable, because the judge
 * updates it with every ping.
 */
export interface GpsRun {
  reason: RunReason;
  startSequence: number;
  lastMs: number;
  lastSequence: number;
  /** Whether neither the lock state nor the effective state has changed since the last ping. */
  isSteady: boolean;
  /** When the run started, or when a cellular ping last refreshed it; and the number of that ping. */
  refreshedMs: number;
  refreshedSequence: number;
  /** Whether the finding refresh-missing has been reported since the last refresh. */
  isRefreshReported: boolean;
  /** The first of the pings, up to the last one, that all report speed 0 at one place; null if the last does not. */
  still: { timeMs: number; sequence: number; position: Position } | null;
  /** Whether the finding motion-unlikely has been reported for these pings. */
  isStillReported: boolean;
  /**
   * How many pings, up to the last one, all report a moving lock at exactly one position; time and number of the first.
   */
  frozenPings: number;
  frozenSequence: number;
  frozenMs: number;
  /** The position of the last ping; null if it has none that is possible. */
  position: Position | null;
}

/** See the top of this file. Mutable, because the judge updates it with every uplink. */
export interface OrderContext {
  /** Since when all uplinks are known: −{@link NEVER} for since the boot, {@link NEVER} if nothing is known. */
  fromMs: number;
  /** When the last uplink was made; {@link NEVER} if there is none. */
  lastMs: number;
  /** The lock state of the last ping. */
  lockState: LockState;
  /** Whether the last ping was made in a state that has state-change pings. */
  hasChangePings: boolean;
  /** The sequence number of the last ping; −1 if there is none. */
  pingSequence: number;
  /** The battery of the last ping; −1 if none is known. */
  batteryPercent: number;
  /** The effective state in which the last uplink was made. */
  state: EffectiveState | null;
  /** When the last cellular ping of a theft, state change and period was made; −{@link NEVER} if none is known. */
  theftCellMs: number;
  stateCellMs: number;
  periodCellMs: number;
  /** The state change and the period ping whose GPS ping is still due; null if none is. */
  awaitedState: AwaitedGps | null;
  awaitedPeriod: AwaitedGps | null;
  /** Whether the last uplink acknowledged a reset, or an unknown command, which may have been one. */
  isReset: boolean;
  /** The lock state that the next ping must have, because the lock acknowledged an unlock or lock with `ok`. */
  promised: LockState;
  /** The sequence number of that acknowledgement; −1 if there is none. */
  promisedSequence: number;
  /** The current run of GPS pings; null if there is none. */
  run: GpsRun | null;
  /** The last position. */
  position: PlacedPing | null;
}

/** The context before any uplink. */
export function newContext(fromMs: number): OrderContext {
  return {
    fromMs,
    lastMs: NEVER,
    lockState: 'unknown',
    hasChangePings: false,
    pingSequence: -1,
    batteryPercent: -1,
    state: null,
    theftCellMs: -NEVER,
    stateCellMs: -NEVER,
    periodCellMs: -NEVER,
    awaitedState: null,
    awaitedPeriod: null,
    isReset: false,
    promised: 'unknown',
    promisedSequence: -1,
    run: null,
    position: null,
  };
}

/** Forgets everything, so that the next uplink is judged like the first of a stretch. */
export function forgetContext(context: OrderContext): void {
  Object.assign(context, newContext(NEVER));
}

/**
 * Forgets what depends on the uplink `sequence`, made at `timeMs`, or on one before it. The judge calls this when the
 * same number comes again with other content, so that neither of the two uplinks is evidence.
 */
export function forgetUpTo(context: OrderContext, sequence: number, timeMs: number): void {
  context.fromMs = Math.max(context.fromMs, timeMs + 1);
  if (context.pingSequence <= sequence) {
    context.lockState = 'unknown';
    context.pingSequence = -1;
    context.batteryPercent = -1;
  }
  if (context.theftCellMs <= timeMs) context.theftCellMs = -NEVER;
  if (context.stateCellMs <= timeMs) context.stateCellMs = -NEVER;
  if (context.periodCellMs <= timeMs) context.periodCellMs = -NEVER;
  if ((context.awaitedState?.sequence ?? NEVER) <= sequence) context.awaitedState = null;
  if ((context.awaitedPeriod?.sequence ?? NEVER) <= sequence) context.awaitedPeriod = null;
  if (context.promisedSequence <= sequence) context.promised = 'unknown';
  if ((context.run?.startSequence ?? NEVER) <= sequence) context.run = null;
  if ((context.position?.sequence ?? NEVER) <= sequence) context.position = null;
}
