/**
 * Compares two traces: which events of a lock only one of them has, and which have other values (`lockgate trace
 * diff`). Does no I/O: the caller reads both files and passes their events in order of time.
 *
 * Two uplinks are the same if lock, kind and reason are equal and the lock made them at the same time, within the
 * tolerance, whenever they arrived. All other events are compared by their time in the trace. Boot and sequence numbers
 * may differ. Memory is bounded: beyond {@link MAX_WAITING} events without a counterpart, the oldest counts as an event
 * that only its trace has.
 */
import type { Milliseconds } from '../../clock.js';
import { formatMac, type Mac } from '../../wire/mac.js';
import { ackUplinkToJson, pingUplinkToJson } from '../../wire/ping-json.js';
import type { TraceEvent } from '../trace.js';
import { commandToJson } from '../writer.js';

/** The first trace, or the second. */
export type Side = 'a' | 'b';

/** Maximum number of events of a trace that wait for their counterpart. */
const MAX_WAITING = 50_000;
/** Maximum number of waiting events that an event is compared with. */
const MAX_COMPARED = 1000;
/** Maximum number of differences with their details. */
const MAX_DETAILS = 1000;
/** Members that say when and how an uplink was sent, not what it says. */
const UNCOMPARED: ReadonlySet<string> = new Set(['date', 'time_ms', 'boot', 'sequence', 'kept', 'dropped', 'raw']);

/** One difference. */
export interface Difference {
  readonly kind: 'only-a' | 'only-b' | 'values';
  /** As in trace A; as in trace B if only B has the event. In the form `A4:C1:38:F0:E1:D2`. */
  readonly mac: string;
  /** A reason, or `ack`, `connect`, `disconnect`, `command`. */
  readonly what: string;
  /** Null for other events than pings. */
  readonly pingType: string | null;
  /** When the lock made the uplink, or when the event happened, ms since the epoch. */
  readonly timeMs: number;
  /** Null in the trace that lacks the event. */
  readonly lineA: number | null;
  readonly lineB: number | null;
  /** The members that differ, with both values; empty unless `kind` is `values`. */
  readonly values: Readonly<Record<string, readonly [a: unknown, b: unknown]>>;
}

/** The differences of one lock and reason. */
export interface DiffRow {
  readonly mac: string;
  readonly what: string;
  /** How many events both traces have, only A has, only B has, and both have with other values. */
  same: number;
  onlyA: number;
  onlyB: number;
  values: number;
  /** The earliest difference; null if there is none. */
  first: Difference | null;
}

export interface DiffOptions {
  readonly toleranceMs: Milliseconds;
  /** Locks of A and their counterparts in B. */
  readonly pairs: ReadonlyMap<Mac, Mac>;
  /** Whether to compare values; otherwise only which events there are. */
  readonly values: boolean;
}

/** An event that waits for its counterpart in the other trace. */
interface WaitingEvent {
  readonly key: string;
  readonly mac: string;
  readonly what: string;
  readonly pingType: string | null;
  readonly timeMs: number;
  readonly line: number;
  readonly members: Readonly<Record<string, unknown>>;
}

/** Compares two traces. */
export class TraceDiff {
  readonly #options: DiffOptions;
  readonly #lockOfB: ReadonlyMap<Mac, Mac>;
  readonly #waiting = { a: new Map<string, WaitingEvent[]>(), b: new Map<string, WaitingEvent[]>() };
  /** The waiting events of each trace in order of arrival, oldest first. */
  readonly #order = { a: new Set<WaitingEvent>(), b: new Set<WaitingEvent>() };
  readonly #rows = new Map<string, DiffRow>();
  #details: Difference[] = [];
  #isTruncated = false;

  constructor(options: DiffOptions) {
    this.#options = options;
    this.#lockOfB = new Map([...options.pairs].map(([a, b]) => [b, a]));
  }

  /** Takes the next event of a trace. Ticks, starts of the gateway and `world` events are not compared. */
  add(side: Side, event: TraceEvent, line: number): void {
    const next = this.#waitingEventOf(side, event, line);
    if (next === null) return;
    const otherSide = side === 'a' ? 'b' : 'a';
    const counterpart = this.#takeNearest(this.#waiting[otherSide].get(next.key), next.timeMs);
    if (counterpart !== undefined) {
      this.#order[otherSide].delete(counterpart);
      if (side === 'a') this.#compare(next, counterpart);
      else this.#compare(counterpart, next);
      return;
    }
    const waiting = this.#waiting[side].get(next.key);
    if (waiting === undefined) this.#waiting[side].set(next.key, [next]);
    else waiting.push(next);
    this.#order[side].add(next);
    if (this.#order[side].size > MAX_WAITING) this.#giveUpOldest(side);
  }

  /** Reports the events that still have no counterpart. To be called once, after the last event. */
  finish(): void {
    for (const side of ['a', 'b'] as const) {
      for (const waiting of this.#order[side]) this.#noteOnlyIn(side, waiting);
      this.#order[side].clear();
      this.#waiting[side].clear();
    }
    this.#details.sort(byTime);
    if (this.#details.length <= MAX_DETAILS) return;
    this.#details.length = MAX_DETAILS;
    this.#isTruncated = true;
  }

  /** Counts by lock and reason, the earliest difference first; rows without a difference last. */
  rows(): DiffRow[] {
    const endMs = Number.POSITIVE_INFINITY;
    return [...this.#rows.values()].sort((a, b) => {
      const [aMs, bMs] = [a.first?.timeMs ?? endMs, b.first?.timeMs ?? endMs];
      if (aMs !== bMs) return aMs - bMs;
      return `${a.mac} ${a.what}` < `${b.mac} ${b.what}` ? -1 : 1;
    });
  }

  /** The earliest differences in order of time, at most 1,000. */
  differences(): readonly Difference[] {
    return this.#details;
  }

  /** Whether there are more differences than {@link differences} returns. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  #waitingEventOf(side: Side, event: TraceEvent, line: number): WaitingEvent | null {
    if (event.event === 'tick' || event.event === 'gateway' || event.event === 'world') return null;
    const { mac: ownMac } = event;
    const counterpartMac = side === 'b' ? this.#lockOfB.get(ownMac) : ownMac;
    // If B has a lock with the same MAC as a paired lock of A, that is another lock: its events are no counterparts of
    // A's. They are counted in the row of that MAC, all as missing in A.
    const isOther = side === 'b' && counterpartMac === undefined && this.#options.pairs.has(ownMac);
    const mac = counterpartMac ?? ownMac;
    const source = 'source' in event ? event.source : 'lock';
    const pingType = event.event === 'ping' ? event.uplink.body.kind : null;
    const what = event.event === 'ping' ? event.uplink.body.reason : event.event;
    const key = `${isOther ? 'b' : ''}${mac} ${source} ${what} ${pingType}`;
    const timeMs = 'uplink' in event ? event.uplink.timeMs : event.atMs;
    return { key, mac: formatMac(mac), what, pingType, timeMs, line, members: membersOf(event) };
  }

  #takeNearest(waiting: WaitingEvent[] | undefined, timeMs: number): WaitingEvent | undefined {
    if (waiting === undefined) return undefined;
    let nearest = -1;
    let nearestMs = this.#options.toleranceMs;
    // Only the last ones are compared: both traces are read in order of time, so counterparts are among them.
    for (let index = waiting.length - 1; index >= Math.max(0, waiting.length - MAX_COMPARED); index--) {
      const distanceMs = Math.abs((waiting[index] as WaitingEvent).timeMs - timeMs);
      if (distanceMs > nearestMs) continue;
      nearest = index;
      nearestMs = distanceMs;
    }
    return nearest < 0 ? undefined : waiting.splice(nearest, 1)[0];
  }

  #giveUpOldest(side: Side): void {
    // A set has its values in the order in which they were added, so the first is the oldest.
    for (const oldest of this.#order[side]) {
      this.#order[side].delete(oldest);
      const waiting = this.#waiting[side].get(oldest.key) ?? [];
      waiting.splice(waiting.indexOf(oldest), 1);
      if (waiting.length === 0) this.#waiting[side].delete(oldest.key);
      this.#noteOnlyIn(side, oldest);
      return;
    }
  }

  #noteOnlyIn(side: Side, { mac, what, pingType, timeMs, line }: WaitingEvent): void {
    const [lineA, lineB] = side === 'a' ? [line, null] : [null, line];
    this.#note({ kind: `only-${side}`, mac, what, pingType, timeMs, lineA, lineB, values: {} });
  }

  #compare(a: WaitingEvent, b: WaitingEvent): void {
    const values: Record<string, readonly [unknown, unknown]> = {};
    if (this.#options.values) {
      for (const member of new Set([...Object.keys(a.members), ...Object.keys(b.members)])) {
        const [valueOfA, valueOfB] = [a.members[member], b.members[member]];
        const isSame = JSON.stringify(valueOfA) === JSON.stringify(valueOfB);
        if (!isSame) values[member] = [valueOfA ?? null, valueOfB ?? null];
      }
    }
    const { mac, what, pingType, timeMs } = a;
    if (Object.keys(values).length === 0) this.#rowOf(mac, what).same += 1;
    else this.#note({ kind: 'values', mac, what, pingType, timeMs, lineA: a.line, lineB: b.line, values });
  }

  #note(difference: Difference): void {
    const row = this.#rowOf(difference.mac, difference.what);
    if (difference.kind === 'only-a') row.onlyA += 1;
    else if (difference.kind === 'only-b') row.onlyB += 1;
    else row.values += 1;
    if (row.first === null || byTime(difference, row.first) < 0) row.first = difference;
    this.#details.push(difference);
    // Sorted only when twice as many have come, since sorting after each would be slow.
    if (this.#details.length < 2 * MAX_DETAILS) return;
    this.#details = this.#details.sort(byTime).slice(0, MAX_DETAILS);
    this.#isTruncated = true;
  }

  #rowOf(mac: string, what: string): DiffRow {
    const key = `${mac} ${what}`;
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = { mac, what, same: 0, onlyA: 0, onlyB: 0, values: 0, first: null };
      this.#rows.set(key, row);
    }
    return row;
  }
}

function byTime(a: Difference, b: Difference): number {
  return a.timeMs - b.timeMs || (a.lineA ?? a.lineB ?? 0) - (b.lineA ?? b.lineB ?? 0);
}

/** The compared members of an event. */
function membersOf(event: TraceEvent): Readonly<Record<string, unknown>> {
  switch (event.event) {
    case 'ping':
      return compared(pingUplinkToJson(event.uplink));
    case 'ack':
      return compared(ackUplinkToJson(event.uplink));
    case 'disconnect':
      return { cause: event.cause };
    case 'command':
      return { ...commandToJson(event.command) };
    default:
      return {};
  }
}

function compared(members: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(members).filter(([name]) => !UNCOMPARED.has(name)));
}
