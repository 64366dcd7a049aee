/**
 * The power model: one table, as frozen data.
 *
 * `step` (step/step.ts) reads it to make a simulated lock act; `judge` (judge/judge.ts) reads it to say whether what a
 * lock did is allowed. They share this table and nothing else, so that each can prove the other wrong.
 *
 * ## The states in prose
 *
 * A lock is in exactly one effective state: the first of these that applies.
 *
 * - **AIRPLANE**: entered when the airplane switch goes on, by hand or by command; left by hand alone, since nothing
 *   reaches the lock any more. All cellular and GPS functionality is off: the specification says *all*, so it is first.
 *   On entering, the lock says so with a close-connection ping, then is silent. It costs nothing.
 * - **LOW_BATTERY**: entered when the battery falls below 10 % (exactly 10 % is not low); left by charging. All is off
 *   except theft tracking, the one exception that the specification names. On entering, the lock says so with a
 *   close-connection ping. It takes no commands. It costs nothing until somebody moves the locked lock.
 * - **RECOVERY**: entered and left by the recovery switch. The connection is kept at all times, so that a lost or
 *   stolen bike can be reached; it ranks over HIGH because "at all times" holds outside a window too. The
 *   dearest state.
 * - **HIGH**: entered and left by the mode. Everything in MID, and the connection is kept during the high window.
 * - **MID**: the rest. The lock sleeps, and wakes for theft, its daily ping, a change of its lock state, and a ride.
 *
 * Ride tracking is a switch within RECOVERY, HIGH and MID, not a state: it adds GPS pings to a ride.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../clock.js';
import type { HighWindow, PowerMode, PowerSettings } from '../wire/ping.js';
import type { KnownReason } from '../wire/reasons.js';

export type EffectiveState = 'AIRPLANE' | 'LOW_BATTERY' | 'RECOVERY' | 'HIGH' | 'MID';

/** When a row applies, as data: a switch that is on, a battery below a bound, or a mode. */
export type Condition =
  | { readonly switch: Exclude<keyof PowerSettings, 'mode'> }
  | { readonly batteryBelowPercent: number }
  | { readonly mode: PowerMode };

/** What a lock does in one state. */
export interface StateRow {
  readonly state: EffectiveState;
  readonly when: Condition;
  readonly theft: boolean;
  readonly period: boolean;
  readonly stateChange: boolean;
  /** Cellular active while unlocked and moving. */
  readonly cellOnInRide: boolean;
  /** GPS pings in a ride, where the ride-tracking switch is on. */
  readonly rideTracking: boolean;
  /** Whether the lock takes commands while it is connected. */
  readonly commands: boolean;
  readonly connectionKept: 'never' | 'in-window' | 'always';
  /** One sentence for people. */
  readonly sentence: string;
}

export type TriggerName =
  | 'theft'
  | 'state-change'
  | 'ride'
  | 'period'
  | 'kept-connection'
  | 'locate-gps'
  | 'locate-cell'
  | 'reset';

/** What makes a lock speak. */
export interface TriggerRow {
  readonly trigger: TriggerName;
  readonly starts: string;
  /** The reason of its cellular ping, where it makes one. */
  readonly cellularReason: KnownReason | null;
  /** The reason of its GPS pings, where it makes any. */
  readonly gpsReason: KnownReason | null;
  readonly ends: string;
}

export interface PowerTimings {
  /** A locked lock that moves for longer than this is being stolen. */
  readonly theftAfterMotion: Milliseconds;
  readonly theftGpsEvery: Milliseconds;
  readonly theftEndsAfterStill: Milliseconds;
  readonly rideGpsEvery: Milliseconds;
  readonly rideEndsAfterStill: Milliseconds;
  /** While theft or ride lasts, a cellular ping of its reason is sent at least this often. */
  readonly refreshEvery: Milliseconds;
  /** On a kept connection, REASON_NETWORK_PING this often. */
  readonly networkPingEvery: Milliseconds;
  /** The search for a fix ends after this. */
  readonly fixSearchEnds: Milliseconds;
  readonly coldFixTakes: Milliseconds;
  readonly warmFixTakes: Milliseconds;
  /** A fix is warm when the last one is younger than this. */
  readonly warmFixWithin: Milliseconds;
  /** A connection that nothing keeps open closes this long after its last uplink or downlink. */
  readonly closeAfterIdle: Milliseconds;
  /** Waits before the first tries to connect again; then `retryThenEvery`. */
  readonly retryAfter: readonly Milliseconds[];
  readonly retryThenEvery: Milliseconds;
  /** The spread of `retryThenEvery` to both sides, as a share of it. */
  readonly retryJitter: number;
  /** The tone before a lock command takes hold. */
  readonly lockWarningTone: Milliseconds;
  readonly keepalive: Milliseconds;
}

/** Bounds that `judge` applies (protocol.md §3). */
export interface JudgeBounds {
  /** Period pings within this of the first are one sequence. */
  readonly periodSequenceSpan: Milliseconds;
  readonly periodTooSoonUnder: Milliseconds;
  readonly periodOverdueAfter: Milliseconds;
  readonly clockAheadOver: Milliseconds;
  readonly connectionUnexplainedOver: Milliseconds;
  readonly windowOfflineOver: Milliseconds;
  readonly recoveryOfflineOver: Milliseconds;
  /** A lower boot with an uplink made so long after one of a higher boot is one to which the counter went back. */
  readonly bootBackOver: Milliseconds;
  /** A gap in the sequence is reported after so many uplinks … */
  readonly gapPatienceUplinks: number;
  /** … or after so long. */
  readonly gapPatience: Milliseconds;
  /** An uplink that arrives later than this after its time is marked buffered. */
  readonly bufferedOver: Milliseconds;
  /** Uplinks up to this late end in the same state, whatever their order. */
  readonly lateWithin: Milliseconds;
}

export interface PowerModel {
  /** In order of rank: the effective state is the first that applies. */
  readonly states: readonly StateRow[];
  /** In order of rank: the first of those due speaks first. */
  readonly triggers: readonly TriggerRow[];
  readonly timings: PowerTimings;
  readonly bounds: JudgeBounds;
  readonly highWindow: HighWindow;
  /** How many uplinks a lock keeps. */
  readonly bufferUplinks: number;
}

const STATES: readonly StateRow[] = [
  {
    state: 'AIRPLANE',
    when: { switch: 'airplane' },
    theft: false,
    period: false,
    stateChange: false,
    cellOnInRide: false,
    rideTracking: false,
    commands: false,
    connectionKept: 'never',
    sentence: 'Airplane mode is on: all cellular and GPS functionality is off, and nothing reaches the lock.',
  },
  {
    state: 'LOW_BATTERY',
    when: { batteryBelowPercent: 10 },
    theft: true,
    period: false,
    stateChange: false,
    cellOnInRide: false,
    rideTracking: false,
    commands: false,
    connectionKept: 'never',
    sentence: 'The battery is below 10 %: all cellular and GPS functionality is off, except theft tracking.',
  },
  {
    state: 'RECOVERY',
    when: { switch: 'recovery' },
    theft: true,
    period: true,
    stateChange: true,
    cellOnInRide: true,
    rideTracking: true,
    commands: true,
    connectionKept: 'always',
    sentence: 'Recovery mode is on: the cellular connection is kept at all times.',
  },
  {
    state: 'HIGH',
    when: { mode: 'HIGH' },
    theft: true,
    period: true,
    stateChange: true,
    cellOnInRide: true,
    rideTracking: true,
    commands: true,
    connectionKept: 'in-window',
    sentence: 'Mode HIGH: all of MID, and the cellular connection is kept between two times of the day.',
  },
  {
    state: 'MID',
    when: { mode: 'MID' },
    theft: true,
    period: true,
    stateChange: true,
    cellOnInRide: true,
    rideTracking: true,
    commands: true,
    connectionKept: 'never',
    sentence: 'Mode MID: the lock sleeps, and wakes for theft, its daily ping, a change of lock state, and a ride.',
  },
];

/** Theft outranks state change, which outranks ride, which outranks period (protocol.md §2). */
const TRIGGERS: readonly TriggerRow[] = [
  {
    trigger: 'theft',
    starts: 'locked and moving for more than 6 s',
    cellularReason: 'REASON_THEFT',
    gpsReason: 'REASON_THEFT',
    ends: '2 min without motion, or unlocked',
  },
  {
    trigger: 'state-change',
    starts: 'the lock state changes',
    cellularReason: 'REASON_STATE_PING',
    gpsReason: 'REASON_STATE_PING',
    ends: 'after the GPS ping for the latest change',
  },
  {
    trigger: 'ride',
    starts: 'unlocked and moving',
    cellularReason: 'REASON_UNLOCKED_MOVEMENT',
    gpsReason: 'REASON_UNLOCKED_PING',
    ends: '2 min without motion, or locked',
  },
  {
    trigger: 'period',
    starts: 'once daily, at a minute of the day of the lock’s own',
    cellularReason: 'REASON_PERIOD_TRACKING',
    gpsReason: 'REASON_PERIOD_TRACKING',
    ends: 'after the GPS ping',
  },
  {
    trigger: 'kept-connection',
    starts: 'HIGH inside its window, or RECOVERY',
    cellularReason: 'REASON_NETWORK_PING',
    gpsReason: null,
    ends: 'the window closes, or the mode or switch changes',
  },
  {
    trigger: 'locate-gps',
    starts: 'the command to locate by GPS',
    cellularReason: null,
    gpsReason: 'REASON_GPS_PING',
    ends: 'at once; without a fix it is acknowledged as failed',
  },
  {
    trigger: 'locate-cell',
    starts: 'the command to locate by cell',
    cellularReason: 'REASON_CELL_PING',
    gpsReason: null,
    ends: 'at once; without a position it is acknowledged as failed',
  },
  {
    trigger: 'reset',
    starts: 'the modem restarted, by itself or by command',
    cellularReason: 'REASON_RESET',
    gpsReason: null,
    ends: 'at once',
  },
];

const TIMINGS: PowerTimings = {
  theftAfterMotion: Seconds(6),
  theftGpsEvery: Seconds(10),
  theftEndsAfterStill: Minutes(2),
  rideGpsEvery: Seconds(30),
  rideEndsAfterStill: Minutes(2),
  refreshEvery: Minutes(5),
  networkPingEvery: Minutes(15),
  fixSearchEnds: Seconds(120),
  coldFixTakes: Seconds(30),
  warmFixTakes: Seconds(5),
  warmFixWithin: Hours(2),
  closeAfterIdle: Seconds(20),
  retryAfter: [Seconds(10), Seconds(30), Seconds(60)],
  retryThenEvery: Minutes(5),
  retryJitter: 0.2,
  lockWarningTone: Seconds(5),
  keepalive: Seconds(300),
};

const BOUNDS: JudgeBounds = {
  periodSequenceSpan: Minutes(10),
  periodTooSoonUnder: Hours(23),
  periodOverdueAfter: Hours(25),
  clockAheadOver: Minutes(5),
  connectionUnexplainedOver: Minutes(10),
  windowOfflineOver: Minutes(10),
  recoveryOfflineOver: Minutes(10),
  bootBackOver: Minutes(5),
  gapPatienceUplinks: 100,
  gapPatience: Hours(24),
  bufferedOver: Seconds(60),
  lateWithin: Days(30),
};

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

/** The model with its defaults (protocol.md §2, §3). */
export const POWER_MODEL: PowerModel = deepFreeze({
  states: STATES,
  triggers: TRIGGERS,
  timings: TIMINGS,
  bounds: BOUNDS,
  highWindow: { fromMinute: 7 * 60, toMinute: 19 * 60, utcOffsetMinutes: 0 },
  bufferUplinks: 256,
});
