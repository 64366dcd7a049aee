/**
 * The belief: what the judge concludes about one lock from the events so far. It is plain data, bounded in size. The
 * gateway stores it as JSON across restarts, so the names of its members must not change.
 *
 * The part about the lock itself (power, battery, lock state, position, window) follows the uplinks' own order
 * (protocol.md §1), so each value has the key of the uplink it is from. The part about the connection and about time
 * follows the order of receipt. A lock's *life* is the time between two wipes of its flash; in each, boots count from
 * 1.
 */

import { type Command, DEFAULT_POWER, type HighWindow, type LockState, type PowerSettings } from '../../wire/ping.js';
import type { EffectiveState, PowerModel } from '../model.js';
import type { UplinkKey } from './event.js';
import type { StandingFinding, Stretch } from './in-order/stretch-state.js';
import { newSentCommand, type SentCommand } from './sent-command.js';
import { NEVER, stateRow } from './state.js';

/**
 * The maximum sizes of the lists in a belief, more than a healthy lock needs. Beyond them the judge forgets the oldest
 * entry, and makes no more findings that depend on it.
 */
export const BELIEF_LIMITS = Object.freeze({
  /** Boots whose sequence numbers the judge tracks. */
  runs: 16,
  /**
   * Spans of numbers without a hole in one boot: somewhat more than the 256 uplinks of a lock's buffer, each of which
   * could fill a hole.
   */
  spans: 300,
  /** Period pings to compare a late ping with: a cellular and a GPS ping a day for 48 days. */
  periodPings: 96,
  /** Commands that the judge remembers. */
  commands: 64,
  /** Commands that switch airplane mode on. */
  airplaneSwitches: 16,
  /** High windows that a command asked for and no acknowledgement has reported. */
  askedWindows: 16,
  /** Holes that the message of a sequence-gap lists. */
  holesNamed: 5,
});

/** The key of an uplink. It is mutable, because the judge overwrites it with every ping instead of making a new one. */
export interface MutableKey {
  credential: number;
  life: number;
  boot: number;
  sequence: number;
}

/**
 * Where a lock was, by its newest uplink with a plausible position. Mutable, because the judge overwrites it with every
 * position.
 */
export interface BelievedPosition {
  latitudeDegrees: number;
  longitudeDegrees: number;
  uncertaintyMeters: number;
  /** By the lock's clock. */
  timeMs: number;
}

/**
 * A span of consecutive sequence numbers of one boot, all of them received, and a summary of its uplinks. Two spans are
 * joined when the hole between them is filled. The result does not depend on the order of joining, so the findings do
 * not depend on the order of arrival.
 */
export interface Span {
  /** The first and the last sequence number. */
  low: number;
  high: number;
  /**
   * If the uplink at `low` is a cellular REASON_STATE_PING: the lock state that it reports, as bits (span.ts). Else 0.
   */
  lowStatePing: number;
  /** The lock state at `high`, as bits; 0 if that uplink is an acknowledgement or from LOW_BATTERY or AIRPLANE. */
  highState: number;
  /** Whether any uplink of the span has airplane off. */
  hasAirplaneOff: boolean;
  /**
   * The sequence of the first close-connection ping with airplane on, if no earlier uplink has airplane off; else −1.
   */
  headClose: number;
  /** Whether an airplane-silence finding about `headClose` has been made. */
  isHeadReported: boolean;
  /** Whether a close-connection ping with airplane on follows the span's last uplink with airplane off. */
  hasTailClose: boolean;
  /**
   * The hole below this span: when the judge noticed it, how many uplinks had come by then, and whether it is overdue.
   */
  holeSinceMs: number;
  holeSinceUplinks: number;
  isHoleOverdue: boolean;
  /** What the in-order rules (in-order/) remember of the span's uplinks. */
  stretch: Stretch;
}

/** What the judge remembers of the sequence numbers of one boot. */
export interface BootRecord {
  readonly credential: number;
  readonly life: number;
  readonly boot: number;
  /** In order, without overlap; never empty. */
  spans: Span[];
  /** The greatest count of discarded uplinks that the lock reported. */
  dropped: number;
  /** How many missing numbers the judge no longer tracks as holes. */
  lost: number;
  /** How many unexplained missing numbers findings have reported. */
  reported: number;
  /**
   * When the uplinks of the boot were made, by the lock's clock (boots.ts): the earliest time, the latest time with its
   * sequence, and the time of the lowest sequence. {@link NEVER} or −{@link NEVER} before the first uplink.
   */
  earliestMs: number;
  latestMs: number;
  latestSequence: number;
  firstMs: number;
  firstSequence: number;
  /** The sequence of the uplink that a boot-back finding is about; −1 if there is no such finding. */
  backSequence: number;
  /** Findings of the in-order rules that can still be withdrawn, sorted by sequence number. */
  standing: StandingFinding[];
}

/** The network pings that were first received on the connection. Times are by the lock's clock. */
export interface NetworkPings {
  /** When the last one was made; −{@link NEVER} before the first. */
  lastMs: number;
  /** How many in a row came too soon after the one before. */
  tooSoon: number;
  /** The sequence number, the state and the lock state of the last one. If they do not match the next, the row ends. */
  sequence: number;
  state: string;
  lockState: string;
  /** Whether a network-ping-missing finding has been made since the last one. */
  isMissingReported: boolean;
}

/** The network pings of a connection that has just been opened. */
export function newNetworkPings(): NetworkPings {
  return { lastMs: -NEVER, tooSoon: 0, sequence: -1, state: '', lockState: '', isMissingReported: false };
}

/** The record of a boot before its first uplink. */
export function newBootRecord(credential: number, life: number, boot: number): BootRecord {
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
    standing: [],
  };
}

/** Less than 0 if the record's boot comes before the boot (credential, life, boot) in order, 0 if it is that boot. */
export function orderOfRecord(record: BootRecord, credential: number, life: number, boot: number): number {
  return record.credential - credential || record.life - life || record.boot - boot;
}

/** A REASON_PERIOD_TRACKING ping. */
export interface PeriodPing extends UplinkKey {
  readonly life: number;
  /** By the lock's clock. */
  readonly timeMs: number;
  /** Whether a period-too-soon finding about this ping has been made. */
  isReported: boolean;
}

/** A command that switches airplane mode on. Times are ms since the epoch, by the judge's clock. */
export interface AirplaneSwitch {
  readonly id: number;
  /** When the command was last sent. */
  sentMs: number;
  /** {@link NEVER} if unknown. */
  readonly expiresMs: number;
  /** Whether the lock has reconnected since the command was sent. */
  hasReconnected: boolean;
  /**
   * - `open`: neither answered nor expired; the lock may be silent because of it.
   * - `acknowledged`: the lock answered, with any result.
   * - `expired`: it expired unanswered; the lock may still be silent because of it.
   * - `refuted`: an uplink with airplane off came on a later connection.
   */
  outcome: 'open' | 'acknowledged' | 'expired' | 'refuted';
}

/** A high window that a command asked for. */
export interface AskedWindow {
  /** The command. */
  readonly id: number;
  /** When it was last sent, by the judge's clock. */
  readonly sentMs: number;
  readonly window: HighWindow;
}

/**
 * Whether a close-connection ping came on a connection: `none`; `first`: as its first uplink, or otherwise made before
 * the connection, so that the ping belongs to the connection before; `own`: later, so that it closes this connection.
 */
export type CloseSeen = 'none' | 'first' | 'own';

/**
 * See the top of this file. Times are ms since the epoch, by the clock of the gateway or of the simulated run unless
 * stated otherwise; {@link NEVER} and −{@link NEVER} are after and before all times. A *lapse* is a silence or an idle
 * connection that breaks a rule (lapse.ts). A member such as `powerFrom` is the key of the uplink from which the value
 * (`power`) is.
 */
export interface Belief {
  readonly version: 1;
  /** The MAC that findings name. */
  readonly mac: string;
  /** The latest time of any event. */
  nowMs: number;
  /** No lapse can start before this time. The next lapse may be later. */
  dueMs: number;

  readonly powerFrom: MutableKey;
  power: PowerSettings;
  readonly batteryFrom: MutableKey;
  batteryPercent: number | null;
  readonly lockStateFrom: MutableKey;
  lockState: LockState;
  readonly positionFrom: MutableKey;
  position: BelievedPosition | null;
  readonly windowFrom: MutableKey;
  highWindow: HighWindow;
  /** When the window was last changed. */
  windowSinceMs: number;
  /**
   * Windows that may be in force instead, in the order of their commands: the lock has acknowledged neither the command
   * nor a later set-power. Only such acknowledgements report a window, and a full buffer may have discarded them.
   */
  askedWindows: AskedWindow[];

  state: EffectiveState;
  /** How many uplinks the lock had dropped at its newest ping. */
  droppedAtPing: number;
  /** Whether it has dropped more since: one of them may have reported another battery level, and so another state. */
  isStateDoubtful: boolean;
  /** When the state was entered; and when a state with period pings last followed one without them, or the reverse. */
  stateSinceMs: number;
  periodStateSinceMs: number;

  isConnected: boolean;
  /** When the lock first connected; null if it never has. */
  firstConnectionMs: number | null;
  /** When the lock last connected, and when a connection last ended. */
  connectedSinceMs: number;
  offlineSinceMs: number | null;
  /** When the last uplink or command came over the connection, or when the lock connected. */
  activityMs: number;
  /** Whether an uplink has come on the connection. */
  hasUplinks: boolean;
  closeSeen: CloseSeen;
  /** How many connections the lock has opened. */
  connections: number;
  /** Whether the judge has received all events of the connection, from its connect on. */
  isConnectionWhole: boolean;
  /** Whether any close-connection ping came over the connection, repeats included. */
  hasClosePing: boolean;
  /**
   * The sequence of the first uplink that came over the connection; −1 without one, or once uplinks of two boots have
   * come. And the sequence of the last one.
   */
  connectionFirst: number;
  connectionLast: number;
  /** The sequence and the boot of the highest uplink that came over the connection; −1 without one. */
  connectionHighest: number;
  connectionHighestBoot: number;
  /** The network pings of the connection. */
  networkPings: NetworkPings;
  /** Since when the gateway listens; null while it doesn't. */
  listeningSinceMs: number | null;

  /**
   * Whether the current lapse has been reported: of connection-unexplained, period-overdue, window- and
   * recovery-offline.
   */
  isUnexplainedReported: boolean;
  isOverdueReported: boolean;
  isWindowReported: boolean;
  isRecoveryReported: boolean;

  /** When the newest period ping was received; null if none is known. And the key of that ping. */
  lastPeriodMs: number | null;
  readonly lastPeriodFrom: MutableKey;
  /** The remembered period pings, in order of time. */
  periods: PeriodPing[];

  /** Commands that were sent, oldest first. */
  commands: SentCommand[];
  /** The judge knows all commands that were sent since this time, and all with a greater id than this one. */
  commandsSinceMs: number;
  commandsAboveId: number;
  /** The commands that switch airplane mode on (switch.ts). */
  airplaneSwitches: AirplaneSwitch[];
  /** Since when at least one of the airplane switches is open; null while none is. */
  suspendedSinceMs: number | null;
  /**
   * Time that does not count towards period-overdue. It applies only while the count starts at `overdueCreditFromMs`.
   */
  overdueCreditMs: number;
  overdueCreditFromMs: number;

  /** The first uplink in order, and whether a finding says that it repeats the initial lock state. */
  readonly first: MutableKey;
  isFirstReported: boolean;
  /** Whether the lock has reported dropped uplinks. If so, the first uplink received may not be the first it made. */
  hasDropped: boolean;
  readonly initialLockState: LockState;

  /** How many uplinks have come, repeats excluded. */
  uplinks: number;
  /** At which count of uplinks, and after which time, the next hole becomes overdue. */
  gapDueUplinks: number;
  gapDueMs: number;
  /** The boots whose sequence numbers are tracked, in order. */
  runs: BootRecord[];
}

/** A command that was sent before the first event that the judge gets. Times are ms since the epoch. */
export interface EarlierCommand {
  readonly id: number;
  readonly command: Command;
  readonly atMs: number;
  readonly expiresMs?: number | undefined;
}

/** What is known of a lock before its first event, from a trace's header or from a store. */
export interface InitialBelief {
  readonly power?: PowerSettings;
  readonly highWindow?: HighWindow;
  readonly lockState?: LockState;
  readonly isConnected?: boolean;
  /** When its last period sequence started. */
  readonly lastPeriodMs?: number | null;
  /** Since when the gateway listens; null if it does not. */
  readonly listeningSinceMs?: number | null;
  /** The commands that were sent to it and can still matter; absent if they are not known. */
  readonly commands?: readonly EarlierCommand[] | null | undefined;
}

/** Less than the key of every uplink. The boot of −1 also marks a period ping of which only the time is known. */
const keyBeforeAll = (): MutableKey => ({ credential: -1, life: 0, boot: -1, sequence: -1 });
const keyAfterAll = (): MutableKey => ({ credential: NEVER, life: NEVER, boot: NEVER, sequence: NEVER });

/**
 * The belief before the first event.
 *
 * @param mac the MAC for findings, in any form
 * @param atMs the time at which the belief starts
 */
export function newBelief(model: PowerModel, mac: string, atMs: number, initial: InitialBelief = {}): Belief {
  const power = initial.power ?? DEFAULT_POWER;
  const isConnected = initial.isConnected ?? false;
  const lastPeriodMs = initial.lastPeriodMs ?? null;
  return {
    version: 1,
    mac,
    nowMs: atMs,
    // In the past, so that the first event computes the true value.
    dueMs: -NEVER,
    powerFrom: keyBeforeAll(),
    power,
    batteryFrom: keyBeforeAll(),
    batteryPercent: null,
    lockStateFrom: keyBeforeAll(),
    lockState: initial.lockState ?? 'unknown',
    positionFrom: keyBeforeAll(),
    position: null,
    windowFrom: keyBeforeAll(),
    highWindow: initial.highWindow ?? model.highWindow,
    windowSinceMs: -NEVER,
    askedWindows: [],
    state: stateRow(model, power, null).state,
    droppedAtPing: 0,
    isStateDoubtful: false,
    stateSinceMs: atMs,
    periodStateSinceMs: atMs,
    isConnected,
    // A lock that is connected, or has sent a period ping, has connected before.
    firstConnectionMs: isConnected ? atMs : lastPeriodMs,
    connectedSinceMs: atMs,
    offlineSinceMs: null,
    activityMs: atMs,
    hasUplinks: false,
    closeSeen: 'none',
    connections: 0,
    isConnectionWhole: false,
    hasClosePing: false,
    connectionFirst: -1,
    connectionLast: -1,
    connectionHighest: -1,
    connectionHighestBoot: -1,
    networkPings: newNetworkPings(),
    listeningSinceMs: initial.listeningSinceMs ?? null,
    isUnexplainedReported: false,
    isOverdueReported: false,
    isWindowReported: false,
    isRecoveryReported: false,
    lastPeriodMs,
    lastPeriodFrom: keyBeforeAll(),
    periods: lastPeriodMs === null ? [] : [{ ...keyBeforeAll(), timeMs: lastPeriodMs, isReported: false }],
    commands: (initial.commands ?? []).map(sentBefore),
    // `== null`: null or absent, so that earlier commands are not known.
    commandsSinceMs: initial.commands == null ? atMs : -NEVER,
    commandsAboveId: initial.commands == null ? NEVER : 0,
    airplaneSwitches: [],
    suspendedSinceMs: null,
    overdueCreditMs: 0,
    overdueCreditFromMs: -NEVER,
    first: keyAfterAll(),
    isFirstReported: false,
    hasDropped: false,
    initialLockState: initial.lockState ?? 'unknown',
    uplinks: 0,
    gapDueUplinks: NEVER,
    gapDueMs: NEVER,
    runs: [],
  };
}

/** Whether the uplink (credential, life, boot, sequence) comes after the uplink `newest` in order. */
export function isAfterKey(
  newest: MutableKey,
  credential: number,
  life: number,
  boot: number,
  sequence: number,
): boolean {
  if (credential !== newest.credential) return credential > newest.credential;
  if (life !== newest.life) return life > newest.life;
  if (boot !== newest.boot) return boot > newest.boot;
  return sequence > newest.sequence;
}

/** Whether `key` is the key of the uplink (credential, life, boot, sequence). */
export function isSameKey(key: MutableKey, credential: number, life: number, boot: number, sequence: number): boolean {
  return sequence === key.sequence && boot === key.boot && life === key.life && credential === key.credential;
}

/** Overwrites the key. */
export function setKey(key: MutableKey, credential: number, life: number, boot: number, sequence: number): void {
  key.credential = credential;
  key.life = life;
  key.boot = boot;
  key.sequence = sequence;
}

/** When the count towards period-overdue starts, ms since the epoch. It does not consider suspended time. */
export function overdueCountStartMs(belief: Belief): number {
  return Math.max(
    belief.lastPeriodMs ?? -NEVER,
    belief.firstConnectionMs ?? -NEVER,
    belief.listeningSinceMs ?? -NEVER,
    belief.periodStateSinceMs,
  );
}

function sentBefore({ id, command, atMs, expiresMs }: EarlierCommand): SentCommand {
  const unknownConnection = -1;
  return newSentCommand(id, command, atMs, expiresMs ?? NEVER, unknownConnection);
}
