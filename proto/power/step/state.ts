/** What a simulated lock remembers between two inputs, and which part of that survives a boot (protocol.md §2). */
import type { Mac } from '../../wire/mac.js';
import {
  type CommandResult,
  DEFAULT_POWER,
  type HighWindow,
  type LockState,
  type Position,
  type PowerSettings,
  type TetherState,
  type Uplink,
} from '../../wire/ping.js';
import type { EffectiveState, PowerModel, StateRow } from '../model.js';
import type { GpsFix, StepEffect } from './io.js';
import { effectiveRow, NEVER, periodMinuteOf } from './reading.js';

/** How many ids of finished commands a lock remembers, so that it carries out each once (protocol.md §1). */
export const MAX_COMMANDS_REMEMBERED = 64;

/** A finished command with its outcome, so that a repeat gets the same answer. */
export interface FinishedCommand {
  readonly id: number;
  readonly result: CommandResult;
  readonly detail: string;
  /** Whether it was a set-power, whose acknowledgement reports the high window. */
  readonly setsPower: boolean;
}

/**
 * What survives a boot. The simulator writes these members to a file as JSON, so their names must not change; `told` in
 * a name means that a ping reported the value. Members are compared by identity to see whether the flash must be
 * written.
 */
export interface LockFlash {
  readonly boot: number;
  readonly power: PowerSettings;
  readonly highWindow: HighWindow;
  readonly lockState: LockState;
  /** The effective state that the lock was in. */
  readonly stateName: EffectiveState;
  /** When the last period sequence started, ms since the epoch, or `NEVER`. */
  readonly lastPeriodMs: number;
  /** Uplinks that are not yet acknowledged, in the order in which the lock will send them. */
  readonly waiting: readonly Uplink[];
  /** The last commands that the lock has carried out or rejected, oldest first. */
  readonly finished: readonly FinishedCommand[];
  /** The lock state that the last ping reported. */
  readonly toldLockState: LockState;
  /** Whether that ping was made in a silent state (AIRPLANE or LOW_BATTERY). */
  readonly toldInSilence: boolean;
  /** Whether a close-connection ping has reported airplane mode, and no later uplink has reported it as off. */
  readonly airplaneTold: boolean;
}

/**
 * The complete state of a lock. It is flat, because each step copies it. Times are ms since the epoch; `NEVER`, a
 * number lower than each of them, stands for a time that does not exist.
 */
export interface StepState extends LockFlash {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  /** The minute of the UTC day of the lock's Period Ping. */
  readonly periodMinute: number;
  /** The state of the random generator that spreads retries, a uint32. */
  readonly jitterState: number;

  /** The sequence number of the last uplink made since boot; 0 before the first. */
  readonly sequence: number;
  /** How many uplinks the lock has discarded since boot because its buffer was full. */
  readonly dropped: number;

  readonly batteryPercent: number;
  /** Null if no e-bike is connected. */
  readonly ebikeVolts: number | null;
  readonly tetherState: TetherState;
  readonly moving: boolean;
  /** When the lock last started or stopped moving. */
  readonly motionSinceMs: number;
  /** When the lock was last locked or unlocked. */
  readonly lockStateSinceMs: number;
  /** Whether the cellular network covers the lock. */
  readonly covered: boolean;
  /** Whether GPS can be received, and since when that holds. */
  readonly skyOpen: boolean;
  readonly skySinceMs: number;

  /** Theft and ride exclude each other: a theft needs a locked lock, a ride an unlocked one. */
  readonly tracking: 'none' | 'theft' | 'ride';
  /** When tracking last made a cellular ping, and a GPS ping. */
  readonly trackCellAtMs: number;
  readonly trackGpsAtMs: number;
  /** Until when tracking searches for a fix. Its next cellular ping starts a new search. */
  readonly trackGpsUntilMs: number;
  /** Until when the lock searches for a fix for the GPS ping of a state change; `NEVER` if no such ping is due. */
  readonly stateGpsUntilMs: number;
  /** The same for the GPS ping of the daily ping. */
  readonly periodGpsUntilMs: number;
  /** When the next period ping is due. */
  readonly nextPeriodMs: number;
  /** Ids of the commands to locate by GPS that wait for a fix; a repeated command is listed again. */
  readonly locatingByGps: readonly number[];
  /** When their search is given up. */
  readonly locatingByGpsUntilMs: number;
  /** Ids of the commands to locate by cell that wait for the network's position. */
  readonly locatingByCell: readonly number[];
  /** Ids of the lock commands that wait for the end of the warning tone; a repeated command is listed again. */
  readonly locking: readonly number[];
  /** When the tone ends and the lock closes. */
  readonly lockingAtMs: number;

  readonly gps: 'off' | 'searching' | 'fixed';
  /** When the current search started, and how long it takes under an open sky. */
  readonly gpsSinceMs: number;
  readonly fixTakesMs: number;
  readonly lastFixMs: number;

  /** `ending`: the lock closes the connection, which has not ended yet. */
  readonly link: 'down' | 'connecting' | 'up' | 'ending';
  /** Whether an uplink was sent and is not acknowledged yet. */
  readonly inFlight: boolean;
  /** How many uplinks were published on this connection. */
  readonly sentOnLink: number;
  /** When the last uplink or downlink was sent or received on this connection, or when the connection started. */
  readonly trafficAtMs: number;
  /** When the last REASON_NETWORK_PING was made on this connection; `NEVER` before the first. */
  readonly networkAtMs: number;
  /** Consecutive failures to connect. */
  readonly failures: number;
  /** The lock does not connect before this time. */
  readonly retryAtMs: number;
  /** The ping that announces a silent state: not needed, still to be made, or made and waiting to be sent. */
  readonly silenceNotice: 'none' | 'due' | 'trying';
  /** A reset command waits for the connection to close; then the lock reports a reset on its next connection. */
  readonly resetAfterClose: boolean;
  /** Whether the lock must report a reset on its next connection. */
  readonly resetDue: boolean;
}

/** A mutable state: a step works on it. */
export type Draft = { -readonly [Key in keyof StepState]: StepState[Key] };

/**
 * A mutable copy of a state. It is written out member by member because that is over 20 times as fast as spreading so
 * many members, and copying is most of the cost of a step. The compiler reports a missing member.
 */
export function draftOf(state: StepState): Draft {
  return {
    boot: state.boot,
    power: state.power,
    highWindow: state.highWindow,
    lockState: state.lockState,
    stateName: state.stateName,
    lastPeriodMs: state.lastPeriodMs,
    waiting: state.waiting,
    finished: state.finished,
    toldLockState: state.toldLockState,
    toldInSilence: state.toldInSilence,
    airplaneTold: state.airplaneTold,
    mac: state.mac,
    firmwareVersion: state.firmwareVersion,
    periodMinute: state.periodMinute,
    jitterState: state.jitterState,
    sequence: state.sequence,
    dropped: state.dropped,
    batteryPercent: state.batteryPercent,
    ebikeVolts: state.ebikeVolts,
    tetherState: state.tetherState,
    moving: state.moving,
    motionSinceMs: state.motionSinceMs,
    lockStateSinceMs: state.lockStateSinceMs,
    covered: state.covered,
    skyOpen: state.skyOpen,
    skySinceMs: state.skySinceMs,
    tracking: state.tracking,
    trackCellAtMs: state.trackCellAtMs,
    trackGpsAtMs: state.trackGpsAtMs,
    trackGpsUntilMs: state.trackGpsUntilMs,
    stateGpsUntilMs: state.stateGpsUntilMs,
    periodGpsUntilMs: state.periodGpsUntilMs,
    nextPeriodMs: state.nextPeriodMs,
    locatingByGps: state.locatingByGps,
    locatingByGpsUntilMs: state.locatingByGpsUntilMs,
    locatingByCell: state.locatingByCell,
    locking: state.locking,
    lockingAtMs: state.lockingAtMs,
    gps: state.gps,
    gpsSinceMs: state.gpsSinceMs,
    fixTakesMs: state.fixTakesMs,
    lastFixMs: state.lastFixMs,
    link: state.link,
    inFlight: state.inFlight,
    sentOnLink: state.sentOnLink,
    trafficAtMs: state.trafficAtMs,
    networkAtMs: state.networkAtMs,
    failures: state.failures,
    retryAtMs: state.retryAtMs,
    silenceNotice: state.silenceNotice,
    resetAfterClose: state.resetAfterClose,
    resetDue: state.resetDue,
  };
}

/** What the functions of one step share: the model, the time, the lock's state, and the effects so far. */
export interface StepContext {
  readonly model: PowerModel;
  readonly nowMs: number;
  readonly state: Draft;
  /** The model's row for the lock's effective state. */
  row: StateRow;
  /** The GPS measurement and the network's position, if the step's input is a tick that carries them; else null. */
  fix: GpsFix | null;
  cellPosition: Position | null;
  /** Whether the step's input is a tick. */
  isTick: boolean;
  readonly effects: StepEffect[];
}

/** A lock before its first boot. Defaults: MID, switches off, the model's window, an empty flash. */
export interface NewLock {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  /** The seed of the random generator that spreads retries, any uint32. */
  readonly jitterSeed: number;
  readonly batteryPercent: number;
  readonly lockState: LockState;
  readonly power?: PowerSettings;
  readonly highWindow?: HighWindow;
  readonly ebikeVolts?: number | null;
  readonly tetherState?: TetherState;
  readonly moving?: boolean;
  readonly covered?: boolean;
  readonly skyOpen?: boolean;
  /** The minute of the UTC day of its Period Ping; by default, a hash of its MAC. */
  readonly periodMinute?: number | undefined;
  /** The contents of its flash; they override the power settings, the window and the lock state above. */
  readonly flash?: LockFlash | undefined;
}

/**
 * The state of a lock without power. Its first input must be `boot`. Written out member by member, as in
 * {@link draftOf}.
 */
export function newLock(model: PowerModel, lock: NewLock): Draft {
  const power = lock.flash?.power ?? lock.power ?? DEFAULT_POWER;
  return {
    boot: lock.flash?.boot ?? 0,
    power,
    highWindow: lock.flash?.highWindow ?? lock.highWindow ?? model.highWindow,
    lockState: lock.flash?.lockState ?? lock.lockState,
    stateName: lock.flash?.stateName ?? effectiveRow(model, power, lock.batteryPercent).state,
    lastPeriodMs: lock.flash?.lastPeriodMs ?? NEVER,
    waiting: lock.flash?.waiting ?? [],
    finished: lock.flash?.finished ?? [],
    toldLockState: lock.flash?.toldLockState ?? lock.lockState,
    toldInSilence: lock.flash?.toldInSilence ?? false,
    airplaneTold: lock.flash?.airplaneTold ?? false,
    mac: lock.mac,
    firmwareVersion: lock.firmwareVersion,
    periodMinute: lock.periodMinute ?? periodMinuteOf(lock.mac),
    // As a uint32.
    jitterState: lock.jitterSeed >>> 0,
    sequence: 0,
    dropped: 0,
    batteryPercent: lock.batteryPercent,
    ebikeVolts: lock.ebikeVolts ?? null,
    tetherState: lock.tetherState ?? 'unknown',
    moving: lock.moving ?? false,
    motionSinceMs: NEVER,
    lockStateSinceMs: NEVER,
    covered: lock.covered ?? true,
    skyOpen: lock.skyOpen ?? true,
    skySinceMs: NEVER,
    tracking: STATE_AFTER_BOOT.tracking,
    trackCellAtMs: STATE_AFTER_BOOT.trackCellAtMs,
    trackGpsAtMs: STATE_AFTER_BOOT.trackGpsAtMs,
    trackGpsUntilMs: STATE_AFTER_BOOT.trackGpsUntilMs,
    stateGpsUntilMs: STATE_AFTER_BOOT.stateGpsUntilMs,
    periodGpsUntilMs: STATE_AFTER_BOOT.periodGpsUntilMs,
    nextPeriodMs: STATE_AFTER_BOOT.nextPeriodMs,
    locatingByGps: STATE_AFTER_BOOT.locatingByGps,
    locatingByGpsUntilMs: STATE_AFTER_BOOT.locatingByGpsUntilMs,
    locatingByCell: STATE_AFTER_BOOT.locatingByCell,
    locking: STATE_AFTER_BOOT.locking,
    lockingAtMs: STATE_AFTER_BOOT.lockingAtMs,
    gps: STATE_AFTER_BOOT.gps,
    gpsSinceMs: STATE_AFTER_BOOT.gpsSinceMs,
    fixTakesMs: STATE_AFTER_BOOT.fixTakesMs,
    lastFixMs: STATE_AFTER_BOOT.lastFixMs,
    link: STATE_AFTER_BOOT.link,
    inFlight: STATE_AFTER_BOOT.inFlight,
    sentOnLink: STATE_AFTER_BOOT.sentOnLink,
    trafficAtMs: STATE_AFTER_BOOT.trafficAtMs,
    networkAtMs: STATE_AFTER_BOOT.networkAtMs,
    failures: STATE_AFTER_BOOT.failures,
    retryAtMs: STATE_AFTER_BOOT.retryAtMs,
    silenceNotice: STATE_AFTER_BOOT.silenceNotice,
    resetAfterClose: STATE_AFTER_BOOT.resetAfterClose,
    resetDue: STATE_AFTER_BOOT.resetDue,
  };
}

/** The members that a boot resets, with their values afterwards. */
const STATE_AFTER_BOOT = {
  tracking: 'none',
  trackCellAtMs: NEVER,
  trackGpsAtMs: NEVER,
  trackGpsUntilMs: NEVER,
  stateGpsUntilMs: NEVER,
  periodGpsUntilMs: NEVER,
  nextPeriodMs: NEVER,
  locatingByGps: [],
  locatingByGpsUntilMs: NEVER,
  locatingByCell: [],
  locking: [],
  lockingAtMs: NEVER,
  gps: 'off',
  gpsSinceMs: NEVER,
  fixTakesMs: 0,
  lastFixMs: NEVER,
  link: 'down',
  inFlight: false,
  sentOnLink: 0,
  trafficAtMs: NEVER,
  networkAtMs: NEVER,
  failures: 0,
  retryAtMs: NEVER,
  silenceNotice: 'none',
  resetAfterClose: false,
  resetDue: false,
} as const satisfies Partial<StepState>;

/** Forgets what a lock forgets at a boot. Written out: `Object.assign` takes over a microsecond for so many members. */
export function resetByBoot(state: Draft): void {
  state.tracking = STATE_AFTER_BOOT.tracking;
  state.trackCellAtMs = STATE_AFTER_BOOT.trackCellAtMs;
  state.trackGpsAtMs = STATE_AFTER_BOOT.trackGpsAtMs;
  state.trackGpsUntilMs = STATE_AFTER_BOOT.trackGpsUntilMs;
  state.stateGpsUntilMs = STATE_AFTER_BOOT.stateGpsUntilMs;
  state.periodGpsUntilMs = STATE_AFTER_BOOT.periodGpsUntilMs;
  state.nextPeriodMs = STATE_AFTER_BOOT.nextPeriodMs;
  state.locatingByGps = STATE_AFTER_BOOT.locatingByGps;
  state.locatingByGpsUntilMs = STATE_AFTER_BOOT.locatingByGpsUntilMs;
  state.locatingByCell = STATE_AFTER_BOOT.locatingByCell;
  state.locking = STATE_AFTER_BOOT.locking;
  state.lockingAtMs = STATE_AFTER_BOOT.lockingAtMs;
  state.gps = STATE_AFTER_BOOT.gps;
  state.gpsSinceMs = STATE_AFTER_BOOT.gpsSinceMs;
  state.fixTakesMs = STATE_AFTER_BOOT.fixTakesMs;
  state.lastFixMs = STATE_AFTER_BOOT.lastFixMs;
  state.link = STATE_AFTER_BOOT.link;
  state.inFlight = STATE_AFTER_BOOT.inFlight;
  state.sentOnLink = STATE_AFTER_BOOT.sentOnLink;
  state.trafficAtMs = STATE_AFTER_BOOT.trafficAtMs;
  state.networkAtMs = STATE_AFTER_BOOT.networkAtMs;
  state.failures = STATE_AFTER_BOOT.failures;
  state.retryAtMs = STATE_AFTER_BOOT.retryAtMs;
  state.silenceNotice = STATE_AFTER_BOOT.silenceNotice;
  state.resetAfterClose = STATE_AFTER_BOOT.resetAfterClose;
  state.resetDue = STATE_AFTER_BOOT.resetDue;
}

/** The part of a state that is stored in the flash. */
export function flashOf(state: StepState): LockFlash {
  return {
    boot: state.boot,
    power: state.power,
    highWindow: state.highWindow,
    lockState: state.lockState,
    stateName: state.stateName,
    lastPeriodMs: state.lastPeriodMs,
    waiting: state.waiting,
    finished: state.finished,
    toldLockState: state.toldLockState,
    toldInSilence: state.toldInSilence,
    airplaneTold: state.airplaneTold,
  };
}

/** Whether any member of the flash differs between two states. */
export function flashDiffers(before: LockFlash, after: LockFlash): boolean {
  return (
    before.waiting !== after.waiting ||
    before.lockState !== after.lockState ||
    before.stateName !== after.stateName ||
    before.lastPeriodMs !== after.lastPeriodMs ||
    before.finished !== after.finished ||
    before.power !== after.power ||
    before.highWindow !== after.highWindow ||
    before.boot !== after.boot ||
    before.toldLockState !== after.toldLockState ||
    before.toldInSilence !== after.toldInSilence ||
    before.airplaneTold !== after.airplaneTold
  );
}
