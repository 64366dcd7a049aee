/**
 * What the uplinks of a stretch of numbers say that the rules in order hold against the next one. Plain data that
 * survives JSON. Times are by the lock's clock, ms since the epoch.
 *
 * A stretch that begins with sequence 1 knows everything since the boot. Of any other, what came before its first
 * uplink is unknown, and what is unknown never breaks a rule.
 */
import type { LockState, Position } from '../../../wire/ping.js';
import type { EffectiveState } from '../../model.js';
import { NEVER } from '../state.js';

/** A position that a lock reported. */
export interface PlacedPing {
  latitudeDegrees: number;
  longitudeDegrees: number;
  uncertaintyMeters: number;
  timeMs: number;
  sequence: number;
}

/** A cellular ping after which a GPS ping is due. */
export interface AwaitedGps {
  timeMs: number;
  sequence: number;
  lockState: LockState;
}

/** The reasons of the GPS pings of a run. */
export type RunReason = 'REASON_THEFT' | 'REASON_UNLOCKED_PING';

/**
 * A run of GPS pings with one reason (gps-run.ts) that goes on. Times are by the lock's clock. It is written in place
 * on the hot path.
 */
export interface GpsRun {
  reason: RunReason;
  startSequence: number;
  lastMs: number;
  lastSequence: number;
  /** Whether neither the lock state nor the state has changed since the last ping. */
  isSteady: boolean;
  /** When the run began or was last refreshed by a cellular ping of its trigger, and by which number. */
  refreshedMs: number;
  refreshedSequence: number;
  isRefreshReported: boolean;
  /** The first of the pings in a row that say speed 0 within their uncertainty of each other; null without one. */
  still: { timeMs: number; sequence: number; position: Position } | null;
  isStillReported: boolean;
  /** How many pings in a row say that the lock moves and give exactly one position. */
  frozenPings: number;
  frozenSequence: number;
  frozenMs: number;
  position: Position | null;
}

/** See the head of this file. It is written in place on the hot path. */
export interface OrderContext {
  /** Since when all uplinks are known: −{@link NEVER} for since the boot. */
  fromMs: number;
  /** When the last uplink was made; {@link NEVER} where there is none. */
  lastMs: number;
  /** Of the last ping: its lock state, whether it was made in a state that has state-change pings, its number. */
  lockState: LockState;
  hasChangePings: boolean;
  pingSequence: number;
  /** The battery of the last ping; −1 where none is known. */
  batteryPercent: number;
  /** The state in which the last uplink was made. */
  state: EffectiveState | null;
  /** When the last cellular ping of a trigger was made; −{@link NEVER} where none is known. */
  theftCellMs: number;
  stateCellMs: number;
  periodCellMs: number;
  awaitedState: AwaitedGps | null;
  awaitedPeriod: AwaitedGps | null;
  /** Whether the last uplink acknowledged a reset, or a command that is not known. */
  isReset: boolean;
  /** The lock state that an `ok` to unlock or lock promises of the next ping. */
  promised: LockState;
  promisedSequence: number;
  /** GPS pings of a theft or of a ride that go on; null where there are none. */
  run: GpsRun | null;
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

/** Forgets everything: what comes next is the first of which something is known. */
export function forgetContext(context: OrderContext): void {
  Object.assign(context, newContext(NEVER));
}

/** Forgets what rests on uplinks up to `sequence`, made at `timeMs`: that number turned out to be no evidence. */
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
