/**
 * The power model: one table, as frozen data.
 *
 * `step` (step/step.ts) reads the model to simulate a lock; `judge` (judge/judge.ts) reads it to check whether what a
 * lock did is allowed. The two share this table and nothing else, so that each can prove the other wrong.
 *
 * ## The states in prose
 *
 * A lock is in exactly one effective state: the first in this list whose condition holds.
 *
 * - **AIRPLANE**: the airplane switch is on. The switch is turned on at the lock or by command, and turned off only at
 *   the lock, since no command reaches it any more. All cellular and GPS functionality is off; the specification says
 *   *all*, so this state comes first. On entering, the lock sends a close-connection ping and then is silent.
 * - **LOW_BATTERY**: the battery is below 10 % (exactly 10 % is not low); charging ends the state. Everything is off
 *   except theft tracking, the only exception in the specification. On entering, the lock sends a close-connection
 *   ping. It takes no commands, and uses no data unless someone moves it while it is locked.
 * - **RECOVERY**: the recovery switch is on. The lock keeps its connection at all times, so that a lost or stolen bike
 *   can be reached. This state ranks above HIGH because "at all times" includes the time outside the high window. It
 *   uses the most data.
 * - **HIGH**: the mode is HIGH. The lock does everything as in MID and keeps its connection during the high window.
 * - **MID**: the mode is MID. The lock sleeps, and wakes for a theft, its daily ping, a change of its lock state, and a
 *   ride.
 *
 * Ride tracking is a switch within RECOVERY, HIGH and MID, not a state: it adds GPS pings to a ride.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../clock.js';
import type { HighWindow, PowerMode, PowerSettings } from '../wire/ping.js';
import type { KnownReason } from '../wire/reasons.js';

export type EffectiveState = 'AIRPLANE' | 'LOW_BATTERY' | 'RECOVERY' | 'HIGH' | 'MID';

/** When a state applies: while a switch is on, while the battery is below a limit, or while a mode is set. */
export type Condition =
  | { readonly switch: Exclude<keyof PowerSettings, 'mode'> }
  | { readonly batteryBelowPercent: number }
  | { readonly mode: PowerMode };

/** What a lock does in one state. */
export interface StateRow {
  readonly state: EffectiveState;
  readonly when: Condition;
  /** Whether the lock sends theft pings. */
  readonly theft: boolean;
  /** Whether the lock sends its daily ping. */
  readonly period: boolean;
  /** Whether the lock sends pings for changes of its lock state. */
  readonly stateChange: boolean;
  /** Whether the lock connects during a ride: while it is unlocked and moving. */
  readonly cellOnInRide: boolean;
  /** Whether the lock sends GPS pings during a ride, provided that the ride-tracking switch is on. */
  readonly rideTracking: boolean;
  /** Whether the lock takes commands while it is connected. */
  readonly commands: boolean;
  /** When the lock holds its connection open: never, during the high window, or always. */
  readonly connectionKept: 'never' | 'in-window' | 'always';
  /** One sentence that describes the state to users. */
  readonly sentence: string;
}

/** What makes a lock send pings. {@link TRIGGERS} says when each starts and ends. */
export type TriggerName =
  | 'theft'
  | 'state-change'
  | 'ride'
  | 'period'
  | 'kept-connection'
  | 'locate-gps'
  | 'locate-cell'
  | 'reset';

/** An event that makes a lock send pings. `starts` and `ends` tell users when it starts and ends. */
export interface TriggerRow {
  readonly trigger: TriggerName;
  readonly starts: string;
  /** The reason of its cellular pings; null if it has none. */
  readonly cellularReason: KnownReason | null;
  /** The reason of its GPS pings; null if it has none. */
  readonly gpsReason: KnownReason | null;
  readonly ends: string;
}

/** How long things take in a lock, and how often it repeats them. `lockgate model` prints these names. */
export interface PowerTimings {
  /** A locked lock that moves for longer than this is being stolen. */
  readonly theftAfterMotion: Milliseconds;
  /** The time between GPS pings of a theft. */
  readonly theftGpsEvery: Milliseconds;
  /** A theft ends when the lock has not moved for this long. */
  readonly theftEndsAfterStill: Milliseconds;
  /** The same two times for a ride. */
  readonly rideGpsEvery: Milliseconds;
  readonly rideEndsAfterStill: Milliseconds;
  /** While a theft or ride lasts, the lock sends a cellular ping with its reason at least this often. */
  readonly refreshEvery: Milliseconds;
  /** While a state keeps the connection, the lock sends REASON_NETWORK_PING this often. */
  readonly networkPingEvery: Milliseconds;
  /** A search for a GPS fix is given up after this time. */
  readonly fixSearchEnds: Milliseconds;
  /** How long a cold and a warm receiver search under an open sky until they have a fix. */
  readonly coldFixTakes: Milliseconds;
  readonly warmFixTakes: Milliseconds;
  /** The receiver is warm if its last fix is younger than this. */
  readonly warmFixWithin: Milliseconds;
  /** A connection that nothing keeps open closes this long after its last uplink or downlink. */
  readonly closeAfterIdle: Milliseconds;
  /** The waits before the first attempts to reconnect; all later attempts wait for `retryThenEvery`. */
  readonly retryAfter: readonly Milliseconds[];
  readonly retryThenEvery: Milliseconds;
  /** How far `retryThenEvery` varies in both directions, as a fraction of it. */
  readonly retryJitter: number;
  /** How long the tone sounds before a lock command closes the shackle. */
  readonly lockWarningTone: Milliseconds;
  /** The keepalive of the lock's MQTT connection. */
  readonly keepalive: Milliseconds;
}

/**
 * The limits that `judge` applies (protocol.md §3). `lockgate model` prints these names. A name with `Over`, `Under` or
 * `After` says on which side of the limit a rule is broken; rules.ts describes the rules.
 */
export interface JudgeBounds {
  /** Period pings (the daily pings) within this time of the first one form one sequence. */
  readonly periodSequenceSpan: Milliseconds;
  /** period-too-soon: two sequences start less than this apart. */
  readonly periodTooSoonUnder: Milliseconds;
  /** period-overdue: no sequence has started for longer than this. */
  readonly periodOverdueAfter: Milliseconds;
  /** clock-ahead: the lock's time is further ahead of the receipt than this. */
  readonly clockAheadOver: Milliseconds;
  /** connection-unexplained: a connection that the state does not keep is idle for longer than this. */
  readonly connectionUnexplainedOver: Milliseconds;
  /** window-offline and recovery-offline: the lock is not connected for longer than this though it should be. */
  readonly windowOfflineOver: Milliseconds;
  readonly recoveryOfflineOver: Milliseconds;
  /** boot-back: a boot made an uplink more than this after a boot with a higher number had made one. */
  readonly bootBackOver: Milliseconds;
  /** sequence-gap: the judge waits for missing numbers until this many uplinks have come or this time has passed. */
  readonly gapPatienceUplinks: number;
  readonly gapPatience: Milliseconds;
  /** An uplink received more than this after it was made is marked as buffered. */
  readonly bufferedOver: Milliseconds;
  /**
   * Uplinks up to this late lead to the same belief (the judge's view of the lock), whatever their order of arrival.
   */
  readonly lateWithin: Milliseconds;
  /** clock-back: an uplink's time is further than this before that of the uplink made before it. */
  readonly clockBackOver: Milliseconds;
  /** clock-behind: an uplink's time is further than this before the connection or command that it follows. */
  readonly clockBehindOver: Milliseconds;
  /** gps-before-cellular: no cellular ping of the same reason was made in this time before a GPS ping. */
  readonly cellularBeforeGpsWithin: Milliseconds;
  /** cadence-too-fast: GPS pings of a theft, GPS pings of a ride, or network pings are closer together than this. */
  readonly theftGpsUnder: Milliseconds;
  readonly rideGpsUnder: Milliseconds;
  readonly networkPingUnder: Milliseconds;
  /** GPS pings of a theft or ride form a *run* as long as no two in a row are further apart than this. */
  readonly runGapOver: Milliseconds;
  /** refresh-missing: a run lasts longer than this without a cellular ping of its trigger. */
  readonly refreshOver: Milliseconds;
  /** network-ping-missing: a connection is kept for longer than this without a network ping. */
  readonly networkPingMissingOver: Milliseconds;
  /** network-ping-unkept: a network ping is made further outside the high window than this. */
  readonly networkPingOutsideOver: Milliseconds;
  /** locate-unasked: no locate command was sent in this time before; the clocks may differ by the slack. */
  readonly locateWithin: Milliseconds;
  readonly locateSlack: Milliseconds;
  /** command-ignored: an uplink later than this on the command's connection shows that the lock had time to answer. */
  readonly ignoredAfter: Milliseconds;
  /** motion-unlikely: a run reports speed 0 at one place for longer than this. */
  readonly stillOver: Milliseconds;
  /** motion-unlikely: so many GPS pings in a row report over this speed (m/s), and exactly one position. */
  readonly frozenPings: number;
  readonly frozenOverSpeed: number;
  /** motion-unlikely: two positions made within this time need more than this speed (m/s). */
  readonly jumpWithin: Milliseconds;
  readonly jumpOverSpeed: number;
}

/** The complete model: what each state allows, what makes a lock send, and all times and limits. */
export interface PowerModel {
  /** In order of rank: the effective state is the first that applies. */
  readonly states: readonly StateRow[];
  /** In order of rank: of several triggers that are due, the first sends first. */
  readonly triggers: readonly TriggerRow[];
  readonly timings: PowerTimings;
  readonly bounds: JudgeBounds;
  readonly highWindow: HighWindow;
  /** How many unacknowledged uplinks a lock can buffer. */
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
    starts: 'once daily, at a minute of the day that is fixed for each lock',
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
  clockBackOver: Minutes(5),
  clockBehindOver: Minutes(5),
  cellularBeforeGpsWithin: Minutes(10),
  theftGpsUnder: Seconds(8),
  rideGpsUnder: Seconds(25),
  networkPingUnder: Minutes(13),
  runGapOver: Minutes(2),
  refreshOver: Minutes(6),
  networkPingMissingOver: Minutes(17),
  networkPingOutsideOver: Minutes(2),
  locateWithin: Hours(24),
  locateSlack: Minutes(5),
  ignoredAfter: Minutes(3),
  stillOver: Minutes(10),
  frozenPings: 20,
  frozenOverSpeed: 1,
  jumpWithin: Minutes(10),
  jumpOverSpeed: 100,
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
  // From 07:00 to 19:00 UTC.
  highWindow: { fromMinute: 7 * 60, toMinute: 19 * 60, utcOffsetMinutes: 0 },
  bufferUplinks: 256,
});
