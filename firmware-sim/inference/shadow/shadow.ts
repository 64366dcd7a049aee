/**
 * The *shadow* of a real lock: a simulated lock without bugs that is compared with the real one while that is in use.
 * From what the real lock has sent so far, the events around it (its *world*) are inferred, and the simulated lock runs
 * with these events. A difference between the two shows a fault of the real lock's firmware. The inference starts again
 * at each comparison, because later uplinks explain earlier ones. Reads no clock and does no I/O: the caller passes the
 * events of the operator interface's live stream, and the time.
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

/**
 * A difference between the two locks: an uplink that only the real lock made (`sent`), or one that only the simulated
 * lock made, so that the real lock should have sent it (`owed`).
 */
export interface ShadowDifference {
  readonly what: 'sent' | 'owed';
  readonly uplink: Uplink;
  /** When the uplink was made, ms since the epoch by the clock of receipt. */
  readonly madeMs: number;
  /** Whether the lock could have sent the uplink. If not, it may be out of coverage instead of faulty. */
  readonly isCertain: boolean;
}

/** What has changed since the last comparison. */
export interface ShadowNews {
  readonly found: readonly ShadowDifference[];
  /** Differences that were reported before and that later uplinks have explained. */
  readonly explained: readonly ShadowDifference[];
}

/** While a connection lasts, an uplink made more recently than this may still be explained by later uplinks. */
const SETTLES_AFTER = Minutes(3);
/** A missing uplink of a lock that may be out of coverage is reported after this time. */
const OWED_AFTER = Minutes(30);
/** Uplinks that are on their way when a connection ends arrive within this time. */
const CLOSES_WITHIN = Seconds(5);
/** An uplink that was due this soon after the lock closed its connection should have been sent on that connection. */
const OWED_AT_CLOSE_WITHIN = Seconds(90);
/** With more events than this, the shadow starts again once the lock has closed its connection. */
const MAX_EVENTS = 4_000;
const MINUTES_OF_DAY = 1440;
/**
 * If no daily ping is known, the lock counts as having made one this long after the shadow's start. So the first one is
 * due 25 h after the start, as it may come at any minute of the day.
 */
const FIRST_PERIOD_DELAY = Minutes(60);

/** See the top of this file. */
export class LockShadow {
  readonly #mac: Mac;
  /** The lock's condition when the shadow starts, and when that is. */
  #lock: TraceLock;
  #fromMs: number;
  /**
   * The lock's events, after a `tick` (an event that only states the time) at the shadow's start. Null until the shadow
   * starts, because the lock was connected when the live stream started.
   */
  #events: TraceEvent[] | null;
  /** The differences that the last comparison found. */
  #current: ShadowDifference[] = [];
  /** How many differences were found before the shadow last started again. */
  #finalDifferences = 0;
  #uplinks = 0;

  /**
   * @param header the header of the live stream
   * @param fromMs when the stream starts, ms since the epoch
   */
  constructor(header: TraceHeader, mac: Mac, fromMs: number) {
    this.#mac = mac;
    this.#lock = header.locks.get(mac) ?? UNNAMED_LOCK;
    this.#fromMs = fromMs;
    this.#events = this.#lock.connected ? null : [{ event: 'tick', atMs: fromMs }];
  }

  /** Whether the shadow has started. It waits until the connection ends that the lock had when the stream started. */
  get isAlive(): boolean {
    return this.#events !== null;
  }

  /** How many uplinks of the real lock were added. */
  get uplinks(): number {
    return this.#uplinks;
  }

  /** How many differences were found and not explained. */
  get differences(): number {
    return this.#finalDifferences + this.#current.length;
  }

  /** Takes the next event of the lock. */
  add(event: TraceEvent): void {
    if (this.#events === null && !this.#tryToStart(event)) return;
    const { atMs } = event;
    this.#events ??= [{ event: 'tick', atMs }];
    this.#events.push(event);
    if (isOwnUplink(event)) this.#uplinks += 1;
  }

  /**
   * Starts the shadow of a lock that was found connected, if this event allows it. Returns whether the event is to be
   * added. A disconnect starts the shadow and is not added, since it ends the connection of the time before.
   */
  #tryToStart(event: TraceEvent): boolean {
    this.#lock = { ...lockAfter(this.#lock, event), connected: false };
    this.#fromMs = event.atMs;
    if ('source' in event && event.source === 'phone') return false;
    if (event.event === 'disconnect') {
      this.#events = [{ event: 'tick', atMs: event.atMs }];
      return false;
    }
    if (event.event === 'connect') return true;
    if (event.event !== 'ping' || event.uplink.body.reason !== 'REASON_NETWORK_PING') return false;
    // A connection may be kept for ever. The shadow then starts at the next network ping, as if the lock connected
    // there.
    this.#events = [{ event: 'connect', atMs: event.atMs, mac: this.#mac, source: 'lock' }];
    return true;
  }

  /** Compares up to `nowMs`, ms since the epoch by the gateway's clock. */
  compare(nowMs: number): ShadowNews {
    if (this.#events === null) return { found: [], explained: [] };
    const current = this.#differences(this.#events, nowMs);
    const found = current.filter((each) => !this.#current.some((known) => isSame(known, each)));
    const explained = this.#current.filter((known) => !current.some((each) => isSame(known, each)));
    this.#current = current;
    if (this.#events.length > MAX_EVENTS) this.#restart(nowMs);
    return { found, explained };
  }

  /** Infers the events around the lock, runs the simulated lock, and compares the uplinks of both. */
  #differences(events: readonly TraceEvent[], nowMs: number): ShadowDifference[] {
    const isMinuteUnknown = this.#lock.lastPeriodMs === null && !events.some(isPeriodPing);
    const lock = isMinuteUnknown ? { ...this.#lock, lastPeriodMs: this.#fromMs + FIRST_PERIOD_DELAY } : this.#lock;
    const reader = new LockTraceReader({ note: '', locks: new Map([[this.#mac, lock]]) });
    for (const event of onReceiptClock(events)) reader.add(event);
    reader.add({ event: 'tick', atMs: Math.max(nowMs, events.at(-1)?.atMs ?? nowMs) });
    const traces = reader.end();
    const [trace] = traces.locks;
    const [traced] = locksFromTrace(traces, { commandReplay: 'sent' });
    if (trace === undefined || traced === undefined) return [];
    const { lastPeriodMs } = lock;
    // The minute of the day at which the lock makes its daily ping: as the events show it, or as the last known daily
    // ping does.
    const isMinuteTraced = lastPeriodMs === null || events.some(isPeriodPing);
    const periodMinute = isMinuteTraced ? traced.periodMinute : Math.floor(lastPeriodMs / Minutes(1)) % MINUTES_OF_DAY;
    const simulated = simulate({ ...traced, periodMinute }, traces);
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
    ].sort((a, b) => a.madeMs - b.madeMs);
  }

  /** Forgets the events and starts again, once the lock has closed its connection or there are twice as many events. */
  #restart(nowMs: number): void {
    const events = this.#events ?? [];
    const last = events.at(-1);
    const isQuiet = last?.event === 'disconnect' && last.cause === 'closed';
    if (!isQuiet && events.length < 2 * MAX_EVENTS) return;
    for (const event of events) this.#lock = lockAfter(this.#lock, event);
    this.#fromMs = nowMs;
    this.#finalDifferences += this.#current.length;
    this.#current = [];
    this.#events = isQuiet ? [{ event: 'tick', atMs: nowMs }] : null;
  }
}

function isPeriodPing(event: TraceEvent): boolean {
  return isOwnUplink(event) && event.event === 'ping' && event.uplink.body.reason === 'REASON_PERIOD_TRACKING';
}

/** The lock's condition after an event. */
function lockAfter(lock: TraceLock, event: TraceEvent): TraceLock {
  if (!isOwnUplink(event)) return lock;
  const { uplink, atMs } = event;
  const { body, power } = uplink;
  if (body.kind === 'ack') return { ...lock, power, ...(body.highWindow && { highWindow: body.highWindow }) };
  const isPeriod = body.reason === 'REASON_PERIOD_TRACKING' && body.kind === 'cellular';
  return { ...lock, power, lockState: body.lockState, ...(isPeriod && { lastPeriodMs: atMs }) };
}

/** Runs the simulated lock in its inferred world, and returns the uplinks that it makes. */
function simulate(traced: TracedLock, { fromMs, untilMs }: { fromMs: number; untilMs: number }): DatedUplink[] {
  const madeUplinks: DatedUplink[] = [];
  const add = (_mac: Mac, uplink: Uplink): void => void madeUplinks.push({ uplink, madeMs: uplink.timeMs });
  const noOutput = null;
  const run = new TracedRun({ locks: [traced], fromMs, untilMs, note: '', hasWorldEvents: false, made: add }, noOutput);
  run.advance(untilMs);
  return madeUplinks;
}

/** Whether later uplinks can no longer explain an uplink: its connection has ended, or it was made long enough ago. */
function isSettled(
  { madeMs, atMs, connectedMs }: TracedUplink,
  connections: readonly TracedConnection[],
  nowMs: number,
) {
  const connection = connections.find((each) => each.connectedMs === connectedMs);
  if (connection !== undefined && connection.endedMs + CLOSES_WITHIN <= nowMs) return true;
  return nowMs - Math.max(madeMs, atMs) > SETTLES_AFTER;
}

/** Whether the lock could have sent a missing uplink: it sent a later one, or closed its connection itself. */
function wasInTouchAfter(
  { uplink, madeMs }: DatedUplink,
  uplinks: readonly TracedUplink[],
  connections: readonly TracedConnection[],
  nowMs: number,
): boolean {
  const afterMs = madeMs + matchWithin(kindOf(uplink));
  // `kept` is 0: no uplink made before this one still waits in the lock, so the missing one was not made.
  const later = uplinks.find((each) => each.madeMs > afterMs && each.uplink.kept === 0);
  if (later !== undefined && isSettled(later, connections, nowMs)) return true;
  return connections.some(({ connectedMs, endedMs, cause }) => {
    const wasDueOnConnection = connectedMs <= madeMs && madeMs <= endedMs + OWED_AT_CLOSE_WITHIN;
    return wasDueOnConnection && cause === 'closed' && nowMs >= endedMs + CLOSES_WITHIN && nowMs > madeMs;
  });
}

/**
 * Whether two comparisons found the same difference. The time of a missing uplink changes a little as more is known.
 */
function isSame(a: ShadowDifference, b: ShadowDifference): boolean {
  if (a.what !== b.what || kindOf(a.uplink) !== kindOf(b.uplink)) return false;
  if (a.what === 'sent') return a.uplink.boot === b.uplink.boot && a.uplink.sequence === b.uplink.sequence;
  return Math.abs(a.madeMs - b.madeMs) <= matchWithin(kindOf(a.uplink));
}
