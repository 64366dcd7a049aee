/**
 * What `judge` believes about one lock: plain data that survives JSON, bounded in size, so that a gateway can store it
 * across restarts.
 *
 * What it believes about the lock itself (power, battery, lock state, position, window) follows the order of
 * protocol.md §1, so each of these has the key of the uplink it is from. What it believes about the connection and
 * about time follows receipt.
 */

import { DEFAULT_POWER, type HighWindow, type LockState, type PowerSettings } from '../../wire/ping.js';
import type { EffectiveState, PowerModel } from '../model.js';
import type { UplinkKey } from './event.js';
import { NEVER, stateRow } from './state.js';

/** The bounds of a belief. Beyond them the oldest is forgotten, and with it the findings that would rest on it. */
export const BELIEF_LIMITS = Object.freeze({
  /** Boots whose numbers are followed at the same time. */
  runs: 16,
  /** Stretches of numbers without a hole, in one boot: as many holes as a lock can fill from its buffer, and some. */
  spans: 300,
  /** Period pings to compare a late one with: 30 days of a cellular and a GPS ping, and half as many again. */
  periodPings: 96,
  /** Commands remembered that switch airplane mode on. */
  airplaneSwitches: 16,
  /** Holes that the sentence of a sequence-gap lists. */
  holesNamed: 5,
});

/** The key of an uplink, written in place on the hot path. */
export interface Newest {
  credential: number;
  life: number;
  boot: number;
  sequence: number;
}

/**
 * Where a lock was, by its newest uplink with a position that can be one. Degrees and whole metres. It is written in
 * place on the hot path.
 */
export interface BelievedPosition {
  latitudeDegrees: number;
  longitudeDegrees: number;
  uncertaintyMeters: number;
  /** By the lock's clock. */
  timeMs: number;
}

/**
 * A stretch of numbers of one boot that came without a hole, and what its ends say. Joining two stretches joins what
 * they say, and the outcome does not depend on the order of joining: that is what makes the findings independent of
 * the order of arrival.
 */
export interface Span {
  low: number;
  high: number;
  /** Bits of the lock states that a cellular REASON_STATE_PING at `low` gives. */
  lowStatePing: number;
  /** Bits of the lock states at `high`, where it was made in neither LOW_BATTERY nor AIRPLANE. */
  highState: number;
  /** Whether any uplink of the stretch has airplane off. */
  hasAirplaneOff: boolean;
  /** The first close-connection ping with airplane on, where no uplink with airplane off stands before it; else −1. */
  headClose: number;
  isHeadReported: boolean;
  /** Whether a close-connection ping with airplane on stands after the last uplink with airplane off. */
  hasTailClose: boolean;
  /** Of the hole below: when it was noticed, how many uplinks had come by then, and whether patience is over. */
  holeSinceMs: number;
  holeSinceUplinks: number;
  isHoleOverdue: boolean;
}

/** The numbers of one boot. */
export interface Run {
  readonly credential: number;
  readonly life: number;
  readonly boot: number;
  /** In order, without overlap; never empty. */
  spans: Span[];
  /** The greatest count of discarded uplinks that the lock gave. */
  dropped: number;
  /** Missing numbers that nobody waits for any longer. */
  lost: number;
  /** Unexplained missing numbers that a finding has told of. */
  reported: number;
  /**
   * When its uplinks were made, by the lock's clock (boots.ts): the earliest time, the latest with its
   * sequence, and that of the lowest sequence. {@link NEVER} or −{@link NEVER} where none has come.
   */
  earliestMs: number;
  latestMs: number;
  latestSequence: number;
  firstMs: number;
  firstSequence: number;
  /** The sequence of the uplink that a boot-back is about; −1 without one. */
  backSequence: number;
}

/** A run of which nothing has come yet. */
export function newRun(credential: number, life: number, boot: number): Run {
  return {
    credential,
    life,
    boot,
    spans: [],
    dropped: 0,
    lost: 0,
    reported: 0,
    earliestMs: NEVER,
    latestMs: -NEVER,
    latestSequence: -1,
    firstMs: -NEVER,
    firstSequence: NEVER,
    backSequence: -1,
  };
}

/** Less than 0 where the run comes before the boot (credential, life, boot) in order, 0 where it is of it. */
export function orderOfRun(run: Run, credential: number, life: number, boot: number): number {
  return run.credential - credential || run.life - life || run.boot - boot;
}

/** A REASON_PERIOD_TRACKING ping. */
export interface PeriodPing extends UplinkKey {
  readonly life: number;
  /** By the lock's clock. */
  readonly timeMs: number;
  isReported: boolean;
}

/** A set-power with airplane on that was sent. Times are ms since the epoch, by the judge's clock. */
export interface AirplaneSwitch {
  readonly id: number;
  /** When it was sent last. */
  sentMs: number;
  /** {@link NEVER} where nothing says when it expires. */
  readonly expiresMs: number;
  /** Whether the lock has connected again since it was sent. */
  hasReconnected: boolean;
  /**
   * - `open`: neither answered nor expired; silence may be what was asked for.
   * - `acknowledged`: the lock answered, whatever it answered.
   * - `expired`: it expired unanswered, and may still be why the lock is silent.
   * - `refuted`: an uplink with airplane off came on a later connection.
   */
  outcome: 'open' | 'acknowledged' | 'expired' | 'refuted';
}

/** Whether a connection has had its close-connection ping: none; one that belongs to the one before; its own. */
export type CloseSeen = 'none' | 'first' | 'own';

/** See the head of this file. Times are ms since the epoch, by the judge's clock where nothing else is said. */
export interface Belief {
  readonly version: 1;
  /** Whom findings name. */
  readonly mac: string;
  /** The latest time that any event brought. */
  nowMs: number;
  /** No lapse can begin before; it may be earlier than the next one, never later. */
  dueMs: number;

  readonly powerFrom: Newest;
  power: PowerSettings;
  readonly batteryFrom: Newest;
  batteryPercent: number | null;
  readonly lockStateFrom: Newest;
  lockState: LockState;
  readonly positionFrom: Newest;
  position: BelievedPosition | null;
  readonly windowFrom: Newest;
  highWindow: HighWindow;

  state: EffectiveState;
  /** When the state was entered, and when one that has period pings was. */
  stateSinceMs: number;
  periodStateSinceMs: number;

  isConnected: boolean;
  /** When the lock first connected; null for one that never has. */
  firstConnectionMs: number | null;
  /** When it last connected, and when a connection last ended. */
  connectedSinceMs: number;
  offlineSinceMs: number | null;
  /** The last connect, uplink or command of the connection. */
  activityMs: number;
  hasUplinks: boolean;
  closeSeen: CloseSeen;
  /** Since when the gateway listens; null while it doesn't. */
  listeningSinceMs: number | null;

  isUnexplainedReported: boolean;
  isOverdueReported: boolean;
  isWindowReported: boolean;
  isRecoveryReported: boolean;

  /** When the newest period ping came. */
  lastPeriodMs: number | null;
  readonly lastPeriodFrom: Newest;
  /** In order of time. */
  periods: PeriodPing[];

  airplaneSwitches: AirplaneSwitch[];
  /** Since when at least one of them is open. */
  suspendedSinceMs: number | null;
  /** Time that does not count towards period-overdue, and from which beginning it would have counted. */
  overdueCreditMs: number;
  overdueCreditFromMs: number;

  /** The first uplink in order, and whether it was found to repeat the initial lock state. */
  readonly first: Newest;
  isFirstReported: boolean;
  /** Whether the lock has told of uplinks that it dropped, so that the first one to come need not be its first. */
  hasDropped: boolean;
  readonly initialLockState: LockState;

  /** New uplinks so far. */
  uplinks: number;
  /** At which count of uplinks, and after which time, patience with some hole ends. */
  gapDueUplinks: number;
  gapDueMs: number;
  /** In order. */
  runs: Run[];
}

/** What is known of a lock before its first event: a trace's header, or what a store holds. */
export interface InitialBelief {
  readonly power?: PowerSettings;
  readonly highWindow?: HighWindow;
  readonly lockState?: LockState;
  readonly isConnected?: boolean;
  /** When its last period sequence began. */
  readonly lastPeriodMs?: number | null;
  /** Since when the gateway listens, where it already does. */
  readonly listeningSinceMs?: number | null;
}

const before = (): Newest => ({ credential: -1, life: 0, boot: -1, sequence: -1 });
const after = (): Newest => ({ credential: NEVER, life: NEVER, boot: NEVER, sequence: NEVER });

/**
 * The belief before the first event.
 *
 * @param mac whom findings shall name; it is not read otherwise
 * @param atMs the time that the belief begins
 */
export function newBelief(model: PowerModel, mac: string, atMs: number, initial: InitialBelief = {}): Belief {
  const power = initial.power ?? DEFAULT_POWER;
  const isConnected = initial.isConnected ?? false;
  const lastPeriodMs = initial.lastPeriodMs ?? null;
  return {
    version: 1,
    mac,
    nowMs: atMs,
    // In the past, so that the first event looks for what is due.
    dueMs: -NEVER,
    powerFrom: before(),
    power,
    batteryFrom: before(),
    batteryPercent: null,
    lockStateFrom: before(),
    lockState: initial.lockState ?? 'unknown',
    positionFrom: before(),
    position: null,
    windowFrom: before(),
    highWindow: initial.highWindow ?? model.highWindow,
    state: stateRow(model, power, null).state,
    stateSinceMs: atMs,
    periodStateSinceMs: atMs,
    isConnected,
    // A lock that is connected, or has had a period sequence, has connected before.
    firstConnectionMs: isConnected ? atMs : lastPeriodMs,
    connectedSinceMs: atMs,
    offlineSinceMs: null,
    activityMs: atMs,
    hasUplinks: false,
    closeSeen: 'none',
    listeningSinceMs: initial.listeningSinceMs ?? null,
    isUnexplainedReported: false,
    isOverdueReported: false,
    isWindowReported: false,
    isRecoveryReported: false,
    lastPeriodMs,
    lastPeriodFrom: before(),
    periods: lastPeriodMs === null ? [] : [{ ...before(), timeMs: lastPeriodMs, isReported: false }],
    airplaneSwitches: [],
    suspendedSinceMs: null,
    overdueCreditMs: 0,
    overdueCreditFromMs: -NEVER,
    first: after(),
    isFirstReported: false,
    hasDropped: false,
    initialLockState: initial.lockState ?? 'unknown',
    uplinks: 0,
    gapDueUplinks: NEVER,
    gapDueMs: NEVER,
    runs: [],
  };
}

/** Whether the uplink (credential, life, boot, sequence) comes after `newest` in order. */
export function isAfter(newest: Newest, credential: number, life: number, boot: number, sequence: number): boolean {
  if (credential !== newest.credential) return credential > newest.credential;
  if (life !== newest.life) return life > newest.life;
  if (boot !== newest.boot) return boot > newest.boot;
  return sequence > newest.sequence;
}

/** Whether it is the very one. */
export function isSame(newest: Newest, credential: number, life: number, boot: number, sequence: number): boolean {
  return (
    sequence === newest.sequence && boot === newest.boot && life === newest.life && credential === newest.credential
  );
}

/** Writes the key in place. */
export function setKey(newest: Newest, credential: number, life: number, boot: number, sequence: number): void {
  newest.credential = credential;
  newest.life = life;
  newest.boot = boot;
  newest.sequence = sequence;
}

/** From when overdue period pings are counted, before time is left out in which it was suspended. */
export function overdueFromMs(belief: Belief): number {
  return Math.max(
    belief.lastPeriodMs ?? -NEVER,
    belief.firstConnectionMs ?? -NEVER,
    belief.listeningSinceMs ?? -NEVER,
    belief.periodStateSinceMs,
  );
}
