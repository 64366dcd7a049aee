/**
 * A simulated lock beside a real one. From what the real lock has sent so far, its world is inferred, and a healthy
 * lock lives in that world. A difference between the two shows a fault of the real lock's firmware. The inference
 * starts again at each comparison, because later uplinks explain earlier ones. Reads no clock and does no I/O: the
 * caller passes the events of the operator interface's live stream, and the time.
 */
import { Minutes, Seconds } from '../../../proto/clock.js';
import type { TraceEvent, TraceHeader, TraceLock } from '../../../proto/trace/trace.js';
import { UNNAMED_LOCK } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { locksFromTrace, type TracedLock } from '../from-trace.js';
import { LockTraceReader, type TracedConnection, type TracedUplink } from '../lock-trace.js';
import { TracedRun } from '../traced-run.js';
import { type DatedUplink, kindOf, matchWithin, unmatchedUplinks } from './comparison.js';
import { isOwnUplink, onReceiptClock } from './receipt-clock.js';

/** What the real lock `sent` although the model would not, or `owed`: what it did not send although the model would. */
export interface ShadowDifference {
  readonly what: 'sent' | 'owed';
  readonly uplink: Uplink;
  /** When it was made, or would have been, ms since the epoch by the clock of receipt. */
  readonly madeMs: number;
  /** Whether the lock has been in touch since. If not, it may be out of coverage instead of wrong. */
  readonly isCertain: boolean;
}

/** What a comparison found since the last one. */
export interface ShadowNews {
  readonly found: readonly ShadowDifference[];
  /** Differences that were reported and that later uplinks have explained. */
  readonly explained: readonly ShadowDifference[];
}

/** While a connection lasts, what was made this recently may still be explained by what follows. */
const SETTLES_AFTER = Minutes(3);
/** A lock that owes something and is not in touch may be out of coverage for so long before that is reported. */
const OWED_AFTER = Minutes(30);
/** After a connection, what was sent on it is compared at once; what is in flight may need this long. */
const CLOSES_WITHIN = Seconds(5);
/** What a lock owes so soon after it closed its connection, it owed on that connection. */
const OWED_AT_CLOSE_WITHIN = Seconds(90);
/** More events are not kept: the shadow then starts again, at a moment when the lock is not connected. */
const MAX_EVENTS = 4_000;
const DAY_MINUTES = 1440;
/** Beyond 24 h. */
const FIRST_PERIOD_DELAY = Minutes(60);

/** See the head of this file. */
export class LockShadow {
  readonly #mac: Mac;
  #lock: TraceLock;
  #fromMs: number;
  /** Null while the lock is in the connection in which the shadow found it. */
  #events: TraceEvent[] | null;
  #standing: ShadowDifference[] = [];
  /** Differences of times that are no longer kept. */
  #final = 0;
  #uplinks = 0;

  /** @param header of the live stream; @param fromMs when it starts, ms since the epoch */
  constructor(header: TraceHeader, mac: Mac, fromMs: number) {
    this.#mac = mac;
    this.#lock = header.locks.get(mac) ?? UNNAMED_LOCK;
    this.#fromMs = fromMs;
    this.#events = this.#lock.connected ? null : [{ event: 'tick', atMs: fromMs }];
  }

  /** Whether the shadow lives. Until the connection in which it found the lock ends, it does not. */
  get isAlive(): boolean {
    return this.#events !== null;
  }

  /** How many of the lock's uplinks were compared or will be. */
  get uplinks(): number {
    return this.#uplinks;
  }

  /** How many differences stand. */
  get differences(): number {
    return this.#final + this.#standing.length;
  }

  /** Takes the next event of the lock. */
  add(event: TraceEvent): void {
    if (this.#events === null && !this.#comesAlive(event)) return;
    const { atMs } = event;
    this.#events ??= [{ event: 'tick', atMs }];
    this.#events.push(event);
    if (isOwnUplink(event)) this.#uplinks += 1;
  }

  /** Whether a lock that was found connected starts again with this event, so that its shadow can. */
  #comesAlive(event: TraceEvent): boolean {
    this.#lock = { ...lockAfter(this.#lock, event), connected: false };
    this.#fromMs = event.atMs;
    if ('source' in event && event.source === 'phone') return false;
    if (event.event === 'disconnect') {
      this.#events = [{ event: 'tick', atMs: event.atMs }];
      return false;
    }
    if (event.event === 'connect') return true;
    if (event.event !== 'ping' || event.uplink.body.reason !== 'REASON_NETWORK_PING') return false;
    // A connection that is kept for ever has no better start than its next network ping.
    this.#events = [{ event: 'connect', atMs: event.atMs, mac: this.#mac, source: 'lock' }];
    return true;
  }

  /** Compares up to `nowMs`, ms since the epoch by the gateway's clock. */
  compare(nowMs: number): ShadowNews {
    if (this.#events === null) return { found: [], explained: [] };
    const current = this.#differences(this.#events, nowMs);
    const found = current.filter((each) => !this.#standing.some((known) => isSame(known, each)));
    const explained = this.#standing.filter((known) => !current.some((each) => isSame(known, each)));
    this.#standing = current;
    if (this.#events.length > MAX_EVENTS) this.#restart(nowMs);
    return { found, explained };
  }

  #differences(events: readonly TraceEvent[], nowMs: number): ShadowDifference[] {
    // If no daily ping is known, the first is due in 25 h, when it would be overdue at any minute of the day.
    const isUnknown = this.#lock.lastPeriodMs === null && !events.some(isPeriodPing);
    const lock = isUnknown ? { ...this.#lock, lastPeriodMs: this.#fromMs + FIRST_PERIOD_DELAY } : this.#lock;
    const reader = new LockTraceReader({ note: '', locks: new Map([[this.#mac, lock]]) });
    for (const event of onReceiptClock(events)) reader.add(event);
    reader.add({ event: 'tick', atMs: Math.max(nowMs, events.at(-1)?.atMs ?? nowMs) });
    const traces = reader.end();
    const [trace] = traces.locks;
    const [traced] = locksFromTrace(traces, { commandReplay: 'sent' });
    if (trace === undefined || traced === undefined) return [];
    const { lastPeriodMs } = lock;
    const isTraced = lastPeriodMs === null || events.some(isPeriodPing);
    const periodMinute = isTraced ? traced.periodMinute : Math.floor(lastPeriodMs / Minutes(1)) % DAY_MINUTES;
    const simulated = liveAs({ ...traced, periodMinute }, traces);
    const { sent, owed } = unmatchedUplinks(trace.uplinks, simulated);
    const { connections, uplinks } = trace;
    return [
      ...sent
        .filter((each) => isSettled(each, connections, nowMs))
        .map(({ uplink, madeMs }) => ({ what: 'sent' as const, uplink, madeMs, isCertain: true })),
      ...owed.flatMap(({ uplink, madeMs }): ShadowDifference[] => {
        const isCertain = wasInTouchAfter({ uplink, madeMs }, uplinks, connections, nowMs);
        const isLong = nowMs - madeMs > OWED_AFTER + matchWithin(kindOf(uplink));
        return isCertain || isLong ? [{ what: 'owed', uplink, madeMs, isCertain }] : [];
      }),
    ].sort((one, other) => one.madeMs - other.madeMs);
  }

  /** Forgets the events, unless the lock is connected or in the middle of something. */
  #restart(nowMs: number): void {
    const events = this.#events ?? [];
    const last = events.at(-1);
    const isQuiet = last?.event === 'disconnect' && last.cause === 'closed';
    if (!isQuiet && events.length < 2 * MAX_EVENTS) return;
    for (const event of events) this.#lock = lockAfter(this.#lock, event);
    this.#fromMs = nowMs;
    this.#final += this.#standing.length;
    this.#standing = [];
    this.#events = isQuiet ? [{ event: 'tick', atMs: nowMs }] : null;
  }
}

function isPeriodPing(event: TraceEvent): boolean {
  return isOwnUplink(event) && event.event === 'ping' && event.uplink.body.reason === 'REASON_PERIOD_TRACKING';
}

/** What is known of the lock after an event. */
function lockAfter(lock: TraceLock, event: TraceEvent): TraceLock {
  if (!isOwnUplink(event)) return lock;
  const { uplink, atMs } = event;
  const { body, power } = uplink;
  if (body.kind === 'ack') return { ...lock, power, ...(body.highWindow && { highWindow: body.highWindow }) };
  const isPeriod = body.reason === 'REASON_PERIOD_TRACKING' && body.kind === 'cellular';
  return { ...lock, power, lockState: body.lockState, ...(isPeriod && { lastPeriodMs: atMs }) };
}

/** Runs a healthy lock in the inferred world, and returns what it made. */
function liveAs(traced: TracedLock, { fromMs, untilMs }: { fromMs: number; untilMs: number }): DatedUplink[] {
  const made: DatedUplink[] = [];
  const take = (_mac: Mac, uplink: Uplink): void => void made.push({ uplink, madeMs: uplink.timeMs });
  const run = new TracedRun({ locks: [traced], fromMs, untilMs, note: '', world: false, made: take }, null);
  run.advance(untilMs);
  return made;
}

/** Whether what the lock sent can no longer be explained by what it is about to send. */
function isSettled(
  { madeMs, atMs, connectedMs }: TracedUplink,
  connections: readonly TracedConnection[],
  nowMs: number,
) {
  const connection = connections.find((each) => each.connectedMs === connectedMs);
  if (connection !== undefined && connection.endedMs + CLOSES_WITHIN <= nowMs) return true;
  return nowMs - Math.max(madeMs, atMs) > SETTLES_AFTER;
}

/** Whether the lock could have sent what it owes: it sent something made later, or closed its connection itself. */
function wasInTouchAfter(
  { uplink, madeMs }: DatedUplink,
  uplinks: readonly TracedUplink[],
  connections: readonly TracedConnection[],
  nowMs: number,
): boolean {
  const afterMs = madeMs + matchWithin(kindOf(uplink));
  const later = uplinks.find((each) => each.madeMs > afterMs && each.uplink.kept === 0);
  if (later !== undefined && isSettled(later, connections, nowMs)) return true;
  return connections.some(({ connectedMs, endedMs, cause }) => {
    const isOfConnection = connectedMs <= madeMs && madeMs <= endedMs + OWED_AT_CLOSE_WITHIN;
    return isOfConnection && cause === 'closed' && nowMs >= endedMs + CLOSES_WITHIN && nowMs > madeMs;
  });
}

/** Whether two comparisons found the same difference. What is owed may move a little as more becomes known. */
function isSame(one: ShadowDifference, other: ShadowDifference): boolean {
  if (one.what !== other.what || kindOf(one.uplink) !== kindOf(other.uplink)) return false;
  if (one.what === 'sent')
    return one.uplink.boot === other.uplink.boot && one.uplink.sequence === other.uplink.sequence;
  return Math.abs(one.madeMs - other.madeMs) <= matchWithin(kindOf(one.uplink));
}
