/**
 * Computes a lock's true presence (online, asleep, late …) from the events that truly happened and from protocol.md §3,
 * so that a test can compare what the gateway reports. Must not use code of the gateway's judge, which it checks; it
 * shares only the names of rules with the judge.
 *
 * A connection lasts until the gateway notices its close, and a lock is in the state of its newest uplink that arrived:
 * the gateway can know no more. Everything else (when the lock connected, which uplinks arrived, since when the gateway
 * listens) comes from the simulation.
 */
import { Days, Hours, Minutes } from '../../../proto/clock.js';
import type { HighWindow, Uplink } from '../../../proto/wire/ping.js';

/**
 * An event that truly happened. `listens` and `ends` are the start and the stop of the gateway; `asked-for-silence` is
 * an airplane command that the gateway sent, and `answered` the lock's answer.
 */
export type TrueEvent = { readonly atMs: number } & (
  | { readonly what: 'listens' | 'ends' | 'connected' | 'disconnected' }
  | { readonly what: 'asked-for-silence' | 'answered'; readonly id: number }
  | { readonly what: 'received'; readonly uplink: Uplink }
);

/** A rule about how long a lock may be silent. */
export type SilenceRule = 'period-overdue' | 'window-offline' | 'recovery-offline';

/** A time in which a rule was broken. */
export interface Lateness {
  readonly rule: SilenceRule;
  /** The lock is late after `fromMs`, up to `toMs`; both ms since the epoch. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** What a gateway should report about a lock; a rule's name if the lock is late by that rule. */
export type TruePresence = 'never-seen' | 'online' | 'airplane' | 'low-battery' | 'asleep' | SilenceRule;

/** A time in which the presence did not change. */
export interface PresencePeriod {
  readonly presence: TruePresence;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The power states of a lock. */
type State = 'AIRPLANE' | 'LOW_BATTERY' | 'RECOVERY' | 'HIGH' | 'MID';

/** How long each rule allows a lock to be silent (protocol.md §3). */
const MAX_SILENCE_MS = { period: Hours(25), window: Minutes(10), recovery: Minutes(10) };
const NEVER = Number.POSITIVE_INFINITY;

/** The true state of a lock after some events. All times are ms since the epoch. */
class TrueState {
  /** When the gateway started; NEVER while it does not run. */
  listensSinceMs = NEVER;
  isConnected = false;
  firstConnectedMs = NEVER;
  offlineSinceMs = -NEVER;
  state: State = 'MID';
  stateSinceMs = -NEVER;
  /** Since when the lock is in a state with (or without) daily Period Pings. */
  periodStateSinceMs = -NEVER;
  lastPeriodMs = -NEVER;
  /** When a lock in mode HIGH is connected, in minutes of the day: 07:00 to 19:00 until the lock reports another. */
  window: HighWindow = { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 };
  /** Since when an airplane command waits for its answer. */
  silenceCommandSinceMs = NEVER;
  /** Earlier times in which an airplane command waited for its answer. */
  readonly suspensions: { fromMs: number; toMs: number }[] = [];
  /** Whether each airplane command is answered, by its id. */
  readonly #silenceCommands = new Map<number, boolean>();
  readonly #seen = new Set<string>();
  // The newest uplink that reported the power settings, the battery, the high window, and a Period Ping.
  #power: Uplink | undefined;
  #battery: Uplink | undefined;
  #window: Uplink | undefined;
  #period: Uplink | undefined;

  apply(event: TrueEvent): void {
    const { atMs } = event;
    switch (event.what) {
      case 'listens':
        this.#offline(atMs);
        this.listensSinceMs = atMs;
        break;
      case 'ends':
        this.#offline(atMs);
        this.listensSinceMs = NEVER;
        break;
      case 'connected':
        this.isConnected = true;
        this.firstConnectedMs = Math.min(this.firstConnectedMs, atMs);
        break;
      case 'disconnected':
        this.#offline(atMs);
        break;
      case 'asked-for-silence':
        if (this.#silenceCommands.has(event.id)) break;
        this.#silenceCommands.set(event.id, false);
        this.silenceCommandSinceMs = Math.min(this.silenceCommandSinceMs, atMs);
        break;
      case 'answered':
        this.#answered(event.id, atMs);
        break;
      case 'received':
        this.#receive(event.uplink, atMs);
        break;
    }
  }

  #offline(atMs: number): void {
    if (this.isConnected) this.offlineSinceMs = atMs;
    this.isConnected = false;
  }

  #answered(id: number, atMs: number): void {
    if (this.#silenceCommands.get(id) !== false) return;
    this.#silenceCommands.set(id, true);
    if ([...this.#silenceCommands.values()].includes(false)) return;
    this.suspensions.push({ fromMs: this.silenceCommandSinceMs, toMs: atMs });
    this.silenceCommandSinceMs = NEVER;
  }

  #receive(uplink: Uplink, atMs: number): void {
    const key = `${uplink.boot}/${uplink.sequence}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    const { body } = uplink;
    if (isNewer(uplink, this.#power)) this.#power = uplink;
    if (body.kind !== 'ack' && isNewer(uplink, this.#battery)) this.#battery = uplink;
    if (body.kind === 'ack' && body.highWindow !== null && isNewer(uplink, this.#window)) {
      this.#window = uplink;
      this.window = body.highWindow;
    }
    const isPeriod = body.kind !== 'ack' && body.reason === 'REASON_PERIOD_TRACKING';
    if (isPeriod && isNewer(uplink, this.#period)) {
      this.#period = uplink;
      this.lastPeriodMs = atMs;
    }
    this.#enter(this.#reportedState(), atMs);
  }

  /** The first of the five states that applies (protocol.md §2). */
  #reportedState(): State {
    const power = this.#power?.power;
    const battery = this.#battery?.body;
    if (power?.airplane === true) return 'AIRPLANE';
    if (battery !== undefined && battery.kind !== 'ack' && battery.batteryPercent < 10) return 'LOW_BATTERY';
    if (power?.recovery === true) return 'RECOVERY';
    return power?.mode ?? 'MID';
  }

  #enter(state: State, atMs: number): void {
    if (state === this.state) return;
    if (hasPeriod(state) !== hasPeriod(this.state)) this.periodStateSinceMs = atMs;
    this.state = state;
    this.stateSinceMs = atMs;
  }

  /** The time after which each rule is broken, if no event comes before. Leaves out rules that can't be broken. */
  ruleDeadlines(): { rule: SilenceRule; afterMs: number }[] {
    const { listensSinceMs, firstConnectedMs, silenceCommandSinceMs } = this;
    if (listensSinceMs === NEVER || firstConnectedMs === NEVER || silenceCommandSinceMs !== NEVER) return [];
    const found: { rule: SilenceRule; afterMs: number }[] = [];
    if (hasPeriod(this.state)) {
      const sinceMs = Math.max(this.lastPeriodMs, firstConnectedMs, listensSinceMs, this.periodStateSinceMs);
      found.push({ rule: 'period-overdue', afterMs: sinceMs + MAX_SILENCE_MS.period + this.#suspendedSince(sinceMs) });
    }
    if (this.isConnected) return found;
    const sinceMs = Math.max(this.offlineSinceMs, firstConnectedMs, listensSinceMs, this.stateSinceMs);
    if (this.state === 'RECOVERY') found.push({ rule: 'recovery-offline', afterMs: sinceMs + MAX_SILENCE_MS.recovery });
    if (this.state === 'HIGH') found.push({ rule: 'window-offline', afterMs: overdueInWindow(this.window, sinceMs) });
    return found;
  }

  /** For how long since then airplane commands waited for an answer, which suspends the rule. */
  #suspendedSince(sinceMs: number): number {
    return this.suspensions.reduce((sum, { fromMs, toMs }) => sum + Math.max(0, toMs - Math.max(fromMs, sinceMs)), 0);
  }

  /** The presence now. `late` is the rule that is broken, if any. */
  presence(late: SilenceRule | undefined): TruePresence {
    if (this.isConnected) return 'online';
    if (this.firstConnectedMs === NEVER) return 'never-seen';
    if (this.state === 'AIRPLANE') return 'airplane';
    if (this.state === 'LOW_BATTERY') return 'low-battery';
    return late ?? 'asleep';
  }
}

/** Whether a lock sends daily Period Pings in a state. */
function hasPeriod(state: State): boolean {
  return state !== 'AIRPLANE' && state !== 'LOW_BATTERY';
}

function isNewer(uplink: Uplink, other: Uplink | undefined): boolean {
  if (other === undefined) return true;
  return uplink.boot === other.boot ? uplink.sequence > other.sequence : uplink.boot > other.boot;
}

/** The first time after `sinceMs` at which 10 min of one opening of the window have passed. */
function overdueInWindow({ fromMinute, toMinute, utcOffsetMinutes }: HighWindow, sinceMs: number): number {
  if (fromMinute === toMinute) return sinceMs + MAX_SILENCE_MS.window;
  const length = Minutes(toMinute > fromMinute ? toMinute - fromMinute : toMinute - fromMinute + 1440);
  const today = Math.floor(sinceMs / Days(1));
  // Days are UTC here: with its offset, a window that matters may open on a neighbouring day. Three days are enough.
  for (let day = today - 3; day <= today + 3; day++) {
    const opensMs = Days(day) + Minutes(fromMinute - utcOffsetMinutes);
    const overMs = Math.max(opensMs, sinceMs) + MAX_SILENCE_MS.window;
    if (overMs < opensMs + length) return overMs;
  }
  return NEVER;
}

/** The truth about one lock, over all the time of a simulation. */
export interface Truth {
  /** The times in which each rule was broken, whatever the presence was. */
  readonly latenesses: readonly Lateness[];
  /** The presences in order, without gaps. */
  readonly presence: readonly PresencePeriod[];
}

/** The truth about one lock. @param events in order of time */
export function truthOf(events: readonly TrueEvent[], startMs: number, endMs: number): Truth {
  const trueState = new TrueState();
  const latenesses: Lateness[] = [];
  const periods: PresencePeriod[] = [{ presence: 'never-seen', fromMs: startMs, toMs: events[0]?.atMs ?? endMs }];
  for (const [index, event] of events.entries()) {
    trueState.apply(event);
    const toMs = events[index + 1]?.atMs ?? endMs;
    const late = trueState
      .ruleDeadlines()
      .map(({ rule, afterMs }) => ({ rule, afterMs, fromMs: Math.max(afterMs, event.atMs), toMs }))
      .filter(({ afterMs }) => afterMs < toMs)
      .sort((a, b) => a.afterMs - b.afterMs);
    for (const { rule, fromMs } of late) addLateness(latenesses, { rule, fromMs, toMs });
    const firstBroken = late[0];
    addPeriod(periods, {
      presence: trueState.presence(undefined),
      fromMs: event.atMs,
      toMs: firstBroken?.fromMs ?? toMs,
    });
    if (firstBroken !== undefined)
      addPeriod(periods, { presence: trueState.presence(firstBroken.rule), fromMs: firstBroken.fromMs, toMs });
  }
  return { latenesses, presence: periods };
}

/** Adds a lateness, or lengthens the last one of its rule if it ends where the next one begins. */
function addLateness(collected: Lateness[], next: Lateness): void {
  const index = collected.findLastIndex(({ rule }) => rule === next.rule);
  const before = collected[index];
  if (before?.toMs === next.fromMs) collected[index] = { ...before, toMs: next.toMs };
  else collected.push(next);
}

/** Adds a period unless it is empty, or lengthens the last one if that has the same presence. */
function addPeriod(collected: PresencePeriod[], next: PresencePeriod): void {
  if (next.fromMs >= next.toMs) return;
  const before = collected.at(-1);
  if (before?.presence === next.presence) collected[collected.length - 1] = { ...before, toMs: next.toMs };
  else collected.push(next);
}
