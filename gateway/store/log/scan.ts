/**
 * The state of a scan of uplinks (contract/merchants/uplink-scan.ts): which rows it wants, and when it is over. Does no
 * I/O.
 */
import { Days, Seconds } from '../../../proto/clock.js';
import { decodeUplink } from '../../../proto/wire/codec.js';
import { UPLINK_KINDS } from '../contract/log/commit.js';
import type { StoredUplink } from '../contract/log/stored-uplink.js';
import type { PingFilter, ScannedUplinks } from '../contract/merchants/uplink-scan.js';
import { FIRST_EVENT_KIND } from '../contract/webhooks/merchant-event.js';
import type { UplinkRow } from './uplink-row.js';

/** Maximum number of rows that one statement reads. */
const ROWS_PER_STATEMENT = 500;
/**
 * A ping's date, by the lock's clock, is at most this much later than its receipt. So a search ends at a ping that was
 * received longer than this before the time span that the scan asks for.
 */
export const MAX_CLOCK_AHEAD = Days(1);
/** A ping that is not buffered was received at most this long after the lock made it. */
export const MAX_UNBUFFERED_DELAY = Seconds(60);

interface ScanTerms {
  readonly filter: PingFilter;
  readonly limit: number;
  readonly maxExamined: number;
}

/** What a scan looks at to decide whether it wants an uplink. */
export type ExaminedRow = Pick<
  UplinkRow,
  'id' | 'merchant_id' | 'uplink_kind' | 'bytes' | 'received_at_ms' | 'buffered'
>;

/** Whether a filter lets all pings pass. */
export function isUnfiltered(filter: PingFilter): boolean {
  return Object.values(filter).every((each) => each === undefined);
}

/** The state of a scan. `Row` is what the engine reads for each uplink that is examined. */
export class Scan<Row extends ExaminedRow> {
  readonly rows: Row[] = [];
  readonly #request: ScanTerms;
  /** How many rows the last statement was to read. */
  #lastCount = 0;
  #examined = 0;
  #lastId: number | null = null;
  #lastReceivedAtMs = 0;
  #receivedToMs = 0;
  #isAtEnd = false;

  constructor(request: ScanTerms) {
    this.#request = request;
  }

  /** How many more rows the scan may examine; 0 if it is over. */
  get remaining(): number {
    const { limit, maxExamined } = this.#request;
    return this.#isAtEnd || this.rows.length >= limit ? 0 : Math.max(maxExamined - this.#examined, 0);
  }

  /**
   * How many rows the next statement should read: what the scan still needs; under a filter, which few rows may pass,
   * at least twice as many as the last statement.
   */
  takeNextCount(): number {
    const { filter, limit } = this.#request;
    const missing = limit - this.rows.length;
    const needed = isUnfiltered(filter) ? missing : Math.max(missing, 2 * this.#lastCount);
    this.#lastCount = Math.min(needed, this.remaining, ROWS_PER_STATEMENT);
    return this.#lastCount;
  }

  /** Examines a row. @param isShown whether it is an event of its lock's merchant */
  examine(row: Row, isShown: boolean): void {
    this.#examined += 1;
    this.#lastId = row.id;
    this.#lastReceivedAtMs = row.received_at_ms;
    this.#receivedToMs = Math.max(this.#receivedToMs, row.received_at_ms);
    if (isShown && matches(row, this.#request.filter)) this.rows.push(row);
  }

  /** Passes over a row that is not wanted, without having read it. */
  pass(id: number): void {
    this.#examined += 1;
    this.#lastId = id;
  }

  /** Ends the scan: no later row can be wanted. */
  end(): void {
    this.#isAtEnd = true;
  }

  /** What was found. @param toUplink reads the rest of a wanted row; undefined if it was deleted meanwhile */
  result(toUplink: (row: Row) => StoredUplink | undefined): ScannedUplinks {
    const last = { lastId: this.#lastId, lastReceivedAtMs: this.#lastReceivedAtMs, receivedToMs: this.#receivedToMs };
    const pings = this.rows.map(toUplink).filter((ping) => ping !== undefined);
    return { pings, examined: this.#examined, ...last, isAtEnd: this.#isAtEnd };
  }
}

/** Whether a row is a ping: neither an acknowledgement (kind 0), nor erased (-1), nor another event for merchants. */
export function isPing({ uplink_kind: kind }: ExaminedRow): boolean {
  return kind > 0 && kind < FIRST_EVENT_KIND;
}

function matches(row: ExaminedRow, { types, reasons, fromMs, toMs }: PingFilter): boolean {
  if (types !== undefined && !types.includes(UPLINK_KINDS[row.uplink_kind] ?? '')) return false;
  // Rules out later pings by their time of receipt, which costs less than to decode them.
  if (toMs !== undefined && row.buffered === 0 && row.received_at_ms - MAX_UNBUFFERED_DELAY > toMs) return false;
  if (reasons === undefined && fromMs === undefined && toMs === undefined) return true;
  const decoded = decodeUplink(row.bytes);
  if (!decoded.ok || decoded.value.body.kind === 'ack') return false;
  const { timeMs, body } = decoded.value;
  if (reasons !== undefined && !reasons.includes(body.reason)) return false;
  return timeMs >= (fromMs ?? Number.NEGATIVE_INFINITY) && timeMs < (toMs ?? Number.POSITIVE_INFINITY);
}
