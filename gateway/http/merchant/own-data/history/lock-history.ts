/**
 * What a lock's log says of its power states and connections in a span of time, for timelines (interfaces.md §2,
 * console.md). Does no I/O: the caller passes the log's entries, oldest first.
 */
import { stateRow } from '../../../../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../../../../proto/power/model.js';
import { decodeUplink } from '../../../../../proto/wire/codec.js';
import { formatDate } from '../../../../../proto/wire/ping-json.js';
import type { LogEntry } from '../../../../store/contract/log/log-entry.js';
import type { StoredUplink } from '../../../../store/contract/log/stored-uplink.js';

/** Assumed for a lock that has not reported its battery: not low, since a low battery is a state. */
const UNKNOWN_BATTERY_PERCENT = 100;

/** A span by the gateway's clock, ms since the epoch; from included, to excluded. */
interface ReceiptSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

interface EnteredState {
  readonly state: string;
  readonly sinceMs: number;
}

interface LockConnection {
  readonly fromMs: number;
  /** Null while it lasts. */
  toMs: number | null;
  /** Why it ended: a cause of a trace's `disconnect`, `takeover`, or `gateway` (stopped); null while it lasts. */
  cause: string | null;
}

/** Collects a lock's states and connections. */
export class LockHistory {
  readonly #span: ReceiptSpan;
  readonly #states: EnteredState[] = [];
  readonly #connections: LockConnection[] = [];
  #batteryPercent = UNKNOWN_BATTERY_PERCENT;
  /** When the first entry was received; null before it. */
  #firstMs: number | null = null;

  constructor(span: ReceiptSpan) {
    this.#span = span;
  }

  /** Takes an entry. Returns false, and changes nothing, for an entry after the span. */
  take(entry: LogEntry): boolean {
    const atMs = entry.type === 'uplink' ? entry.uplink.receivedAtMs : entry.atMs;
    if (atMs >= this.#span.toMs) return false;
    this.#firstMs ??= atMs;
    if (entry.type === 'uplink') this.#takeUplink(entry.uplink);
    else this.#takeEvent(entry);
    return true;
  }

  /**
   * The answer: the state at the start of the span and each later change, and the connections that reach into the span.
   *
   * @param isCut whether older entries were not read
   */
  json(isCut: boolean) {
    const { fromMs } = this.#span;
    const before = this.#states.findLast(({ sinceMs }) => sinceMs <= fromMs);
    const states = [
      ...(before === undefined ? [] : [before]),
      ...this.#states.filter(({ sinceMs }) => sinceMs > fromMs),
    ];
    const isIncomplete = isCut && this.#firstMs !== null && this.#firstMs > fromMs;
    return {
      states: states.map(({ state, sinceMs }) => ({ state, since: formatDate(sinceMs) })),
      connections: this.#connections
        .filter(({ toMs }) => toMs === null || toMs > fromMs)
        .map(({ fromMs: startMs, toMs, cause }) => {
          return { from: formatDate(startMs), to: toMs === null ? null : formatDate(toMs), cause };
        }),
      complete_from: isIncomplete ? formatDate(this.#firstMs ?? fromMs) : null,
    };
  }

  /** A phone's uplinks say nothing about the lock. An uplink whose bytes are damaged is left out. */
  #takeUplink({ source, bytes, receivedAtMs, isDamaged }: StoredUplink): void {
    if (source !== 'lock' || isDamaged) return;
    const decoded = decodeUplink(bytes);
    if (!decoded.ok) return;
    const { power, body } = decoded.value;
    if (body.kind !== 'ack') this.#batteryPercent = body.batteryPercent;
    const { state } = stateRow(POWER_MODEL, power, this.#batteryPercent);
    if (this.#states.at(-1)?.state !== state) this.#states.push({ state, sinceMs: receivedAtMs });
  }

  /** An event of a lock itself has no source; a phone's says nothing about the lock's connection. */
  #takeEvent({ atMs, event }: LogEntry & { readonly type: 'lock-event' }): void {
    if (event.event === 'connect' && event.source === undefined) {
      this.#endConnection(atMs, 'takeover');
      this.#connections.push({ fromMs: atMs, toMs: null, cause: null });
    } else if (event.event === 'disconnect' && event.source === undefined) this.#endConnection(atMs, event.cause);
    else if (event.event === 'gateway') this.#endConnection(atMs, 'gateway');
  }

  #endConnection(atMs: number, cause: string): void {
    const last = this.#connections.at(-1);
    if (last === undefined || last.toMs !== null) return;
    last.toMs = atMs;
    last.cause = cause;
  }
}
