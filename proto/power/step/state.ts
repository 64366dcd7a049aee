/** What a simulated lock remembers between two inputs, and which of it outlives a boot (protocol.md §2). */
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
export const COMMANDS_REMEMBERED = 64;

/** A command that is done with, and what was said of it: a repeat gets the same answer. */
export interface FinishedCommand {
  readonly id: number;
  readonly result: CommandResult;
  readonly detail: string;
  /** Whether it was a set-power, whose acknowledgement tells the high window. */
  readonly setsPower: boolean;
}

/** What outlives a boot. Members are compared by identity to see whether the flash must be written. */
export interface LockFlash {
  readonly boot: number;
  readonly power: PowerSettings;
  readonly highWindow: HighWindow;
  readonly lockState: LockState;
  readonly stateName: EffectiveState;
  /** When the last period sequence began, ms since the epoch, or `NEVER`. */
  readonly lastPeriodMs: number;
  /** What was made and not yet acknowledged, in the order in which it will be sent. */
  readonly waiting: readonly Uplink[];
  readonly finished: readonly FinishedCommand[];
  /** The lock state that the last ping carried. */
  readonly toldLockState: LockState;
  /** Whether that ping was made in a silent state. */
  readonly toldInSilence: boolean;
  /** Whether a close-connection ping has reported airplane mode, and nothing since that it is off. */
  readonly airplaneTold: boolean;
}

/** All that a lock knows. One flat shape, since it is copied at each step. Times are ms since the epoch. */
export interface StepState extends LockFlash {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  readonly periodMinute: number;
  /** The state of the dice for the retry's spread, a uint32. */
  readonly chance: number;

  /** Of the last uplink made since boot; 0 before the first. */
  readonly sequence: number;
  readonly dropped: number;

  readonly batteryPercent: number;
  readonly ebikeVolts: number | null;
  readonly tetherState: TetherState;
  readonly moving: boolean;
  /** Since when it moves, or stands still. */
  readonly motionSinceMs: number;
  readonly lockStateSinceMs: number;
  readonly covered: boolean;
  readonly skyOpen: boolean;
  readonly skySinceMs: number;

  /** Theft and ride exclude each other: one needs a locked lock, the other an unlocked one. */
  readonly tracking: 'none' | 'theft' | 'ride';
  readonly trackCellAtMs: number;
  readonly trackGpsAtMs: number;
  /** Until when tracking searches for a fix; it searches again with its next cellular ping. */
  readonly trackGpsUntilMs: number;
  /** Until when the GPS ping of a state change is searched for; `NEVER` where none is due. */
  readonly stateGpsUntilMs: number;
  readonly periodGpsUntilMs: number;
  readonly nextPeriodMs: number;
  /** Ids of the commands to locate that wait for a fix, one for each arrival. */
  readonly locating: readonly number[];
  readonly locatingUntilMs: number;
  readonly locatingByCell: readonly number[];
  /** Ids of the lock commands whose warning tone sounds, one for each arrival. */
  readonly locking: readonly number[];
  readonly lockingAtMs: number;

  readonly gps: 'off' | 'searching' | 'fixed';
  readonly gpsSinceMs: number;
  readonly fixTakesMs: number;
  readonly lastFixMs: number;

  readonly link: 'down' | 'connecting' | 'up' | 'ending';
  readonly inFlight: boolean;
  /** How many uplinks were published on this connection. */
  readonly sentOnLink: number;
  /** When the last uplink or downlink passed, or the connection began. */
  readonly trafficAtMs: number;
  readonly networkAtMs: number;
  readonly failures: number;
  readonly retryAtMs: number;
  /** Whether entering a silent state is still to be said, or is being said. */
  readonly farewell: 'none' | 'due' | 'trying';
  readonly resetAfterClose: boolean;
  readonly resetDue: boolean;
}

/** A state on which a step works before anybody sees it. */
export type Draft = { -readonly [Key in keyof StepState]: StepState[Key] };

/**
 * A copy to work on. Written out member by member, since that is over 20 times as fast as a spread of so many members
 * that hold times, and a copy is most of what a step costs; the compiler sees that none is missing.
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
    chance: state.chance,
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
    locating: state.locating,
    locatingUntilMs: state.locatingUntilMs,
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
    farewell: state.farewell,
    resetAfterClose: state.resetAfterClose,
    resetDue: state.resetDue,
  };
}

/** One step at work: the model, the moment, the draft and what has been decided so far. */
export interface Turn {
  readonly model: PowerModel;
  readonly nowMs: number;
  readonly state: Draft;
  row: StateRow;
  /** What GPS reads; null but in a tick. */
  fix: GpsFix | null;
  cellPosition: Position | null;
  /** Whether this step is a tick, and so carries readings. */
  ticked: boolean;
  readonly effects: StepEffect[];
}

/** What a lock is before its first boot. Members left out: MID, switches off, the model's window, an empty flash. */
export interface NewLock {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  /** A seed for the retry's spread, any uint32. */
  readonly chance: number;
  readonly batteryPercent: number;
  readonly lockState: LockState;
  readonly power?: PowerSettings;
  readonly highWindow?: HighWindow;
  readonly ebikeVolts?: number | null;
  readonly tetherState?: TetherState;
  readonly moving?: boolean;
  readonly covered?: boolean;
  readonly skyOpen?: boolean;
  /** The minute of the UTC day of its Period Ping; by its MAC where it is left out. */
  readonly periodMinute?: number;
  /** What the lock kept when it last had power; it overrides the power settings and the window above. */
  readonly flash?: LockFlash;
}

/** A lock without power. The first input that it must be given is `boot`. */
export function newLock(model: PowerModel, lock: NewLock): Draft {
  const power = lock.flash?.power ?? lock.power ?? DEFAULT_POWER;
  return draftOf({
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
    chance: lock.chance >>> 0,
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
    ...VOLATILE,
  });
}

/** What a boot clears. */
export const VOLATILE = {
  tracking: 'none',
  trackCellAtMs: NEVER,
  trackGpsAtMs: NEVER,
  trackGpsUntilMs: NEVER,
  stateGpsUntilMs: NEVER,
  periodGpsUntilMs: NEVER,
  nextPeriodMs: NEVER,
  locating: [],
  locatingUntilMs: NEVER,
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
  farewell: 'none',
  resetAfterClose: false,
  resetDue: false,
} as const satisfies Partial<StepState>;

/** What of a state stands in the flash. */
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

/** Whether anything that stands in the flash has changed from one state to the next. */
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
