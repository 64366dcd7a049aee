/**
 * Scans uplinks (contract/merchants/uplink-scan.ts) over one connection, in the thread of scan-thread.ts or in the
 * caller's. It first reads only what decides whether an uplink is wanted; the rest, and the checksum, is read of wanted
 * uplinks alone.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import type { PingFilter, ScannedUplinks } from '../../contract/merchants/uplink-scan.js';
import { type ExaminedRow, isPing, isUnfiltered, MAX_CLOCK_AHEAD, Scan } from '../../log/scan.js';
import { IS_PING, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../log/uplink-row.js';
import { type HintedId, HintedPings } from './hinted-pings.js';

/** A scan of a lock's pings, with the lock's newest uplinks, which the index by lock does not have yet. */
export interface PingScanRequest {
  readonly type: 'pings';
  readonly deviceId: number;
  readonly beforeId: number;
  /** The index of the log by lock is complete up to this id. */
  readonly indexedId: number;
  /** The lock's later uplinks, ascending. */
  readonly newerIds: readonly number[];
  readonly filter: PingFilter;
  readonly limit: number;
  readonly maxExamined: number;
}

/** A scan of a merchant's events. */
export interface EventScanRequest {
  readonly type: 'events';
  readonly merchantId: number;
  readonly afterId: number;
  readonly filter: PingFilter;
  readonly limit: number;
  readonly maxExamined: number;
}

/** What a scan reads of each uplink that it examines; the order of the columns is that of {@link toExamined}. */
const EXAMINED_COLUMNS = 'u.id, u.merchant_id, u.kind, u.bytes, u.received_at_ms, u.buffered';
/**
 * A lock's uplinks in the index by lock, newest first: before an id, and up to the id to which the index is complete.
 */
export const PINGS_OF_LOCK = `SELECT ${EXAMINED_COLUMNS} FROM uplink_of_device t JOIN uplink u ON u.id = t.uplink_id
  WHERE t.device_id = ? AND t.uplink_id < ? AND t.uplink_id <= ? ORDER BY t.uplink_id DESC LIMIT ?`;
/** The ids and hints of the same uplinks, from the index alone. */
export const HINTS_OF_LOCK = `SELECT uplink_id, hint FROM uplink_of_device
  WHERE device_id = ? AND uplink_id < ? AND uplink_id <= ? ORDER BY uplink_id DESC LIMIT ?`;
/** A merchant's pings after an id, oldest first. */
export const EVENTS_OF_MERCHANT = `SELECT ${EXAMINED_COLUMNS} FROM uplink u
  WHERE u.merchant_id = ? AND u.id > ? AND ${IS_PING} ORDER BY u.id LIMIT ?`;
const EXAMINED_BY_ID = `SELECT ${EXAMINED_COLUMNS} FROM uplink u WHERE u.id = ?`;
const UPLINK_BY_ID = `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.id = ?`;

/** A row of {@link EXAMINED_COLUMNS}, as a list: SQLite's driver makes lists faster than objects. */
type ExaminedColumns = [
  id: number,
  merchantId: number,
  kind: number,
  bytes: Buffer,
  receivedAtMs: number,
  buffered: number,
];

export class UplinkScanner {
  readonly #pings: Statement;
  readonly #hints: Statement;
  readonly #events: Statement;
  readonly #examinedById: Statement;
  readonly #byId: Statement;
  readonly #ownerOf: Statement;

  /** `db` is a reading connection. */
  constructor(db: Database) {
    this.#pings = db.prepare(PINGS_OF_LOCK).raw();
    this.#hints = db.prepare(HINTS_OF_LOCK).raw();
    this.#events = db.prepare(EVENTS_OF_MERCHANT).raw();
    this.#examinedById = db.prepare(EXAMINED_BY_ID).raw();
    this.#byId = db.prepare(UPLINK_BY_ID);
    this.#ownerOf = db.prepare('SELECT merchant_id FROM device WHERE id = ?').pluck();
  }

  scan(request: PingScanRequest | EventScanRequest): ScannedUplinks {
    const scan = new Scan<ExaminedRow>(request);
    if (request.type === 'pings') this.#scanPings(request, scan);
    else this.#scanEvents(request, scan);
    const found = scan.result(({ id }) => this.#read(id));
    const { lastId } = found;
    // Uplinks that the hints rule out are not read; the time of the last one may be asked for.
    if (request.type === 'events' || lastId === null) return found;
    return { ...found, lastReceivedAtMs: this.#receivedAtMs(lastId) ?? found.lastReceivedAtMs };
  }

  /** Undefined if the row is missing. */
  #receivedAtMs(id: number): number | undefined {
    const columns = this.#examinedById.get(id) as ExaminedColumns | undefined;
    return columns && toExamined(columns).received_at_ms;
  }

  #read(id: number): StoredUplink | undefined {
    const row = this.#byId.get(id) as UplinkRow | undefined;
    return row === undefined ? undefined : toUplink(row);
  }

  #scanPings(request: PingScanRequest, scan: Scan<ExaminedRow>): void {
    const { deviceId, beforeId, indexedId, newerIds, filter } = request;
    const ownerId = this.#ownerOf.get(deviceId) as number | undefined;
    // Pings that were received before this time are too old, by whatever clock of the lock.
    const endMs = (filter.fromMs ?? Number.NEGATIVE_INFINITY) - MAX_CLOCK_AHEAD;
    const examine = (row: ExaminedRow): void => {
      if (row.received_at_ms < endMs) scan.end();
      else scan.examine(row, isPing(row) && row.merchant_id === ownerId);
    };
    for (const id of [...newerIds].reverse()) {
      if (scan.remaining === 0) return;
      const columns = id < beforeId ? (this.#examinedById.get(id) as ExaminedColumns | undefined) : undefined;
      if (columns !== undefined) examine(toExamined(columns));
    }
    if (!isUnfiltered(filter)) {
      this.#scanHinted(request, scan, examine);
      return;
    }
    for (let before = beforeId; scan.remaining > 0; ) {
      const count = scan.takeNextCount();
      const rows = this.#pings.all(deviceId, before, indexedId, count) as ExaminedColumns[];
      for (const columns of rows) if (scan.remaining > 0) examine(toExamined(columns));
      before = rows.at(-1)?.[0] ?? before;
      if (rows.length < count && scan.remaining > 0) scan.end();
    }
  }

  /** Reads only the rows that the hints in the index don't rule out. */
  #scanHinted(
    { deviceId, beforeId, indexedId, filter, limit }: PingScanRequest,
    scan: Scan<ExaminedRow>,
    examine: (row: ExaminedRow) => void,
  ): void {
    const hinted = new HintedPings(deviceId, filter, (id) => this.#receivedAtMs(id));
    for (let before = beforeId; scan.remaining > 0; ) {
      const count = scan.takeNextCount();
      const rows = this.#hints.all(deviceId, before, indexedId, count) as HintedId[];
      hinted.enter(rows);
      for (const row of rows) {
        if (scan.remaining === 0) return;
        const [id] = row;
        const columns = hinted.mayMatch(row) ? (this.#examinedById.get(id) as ExaminedColumns | undefined) : undefined;
        if (columns === undefined) scan.pass(id);
        else examine(toExamined(columns));
      }
      before = rows.at(-1)?.[0] ?? before;
      const isFull = scan.rows.length >= limit;
      if (hinted.isAtEnd ? !isFull : rows.length < count && scan.remaining > 0) scan.end();
    }
  }

  #scanEvents({ merchantId, afterId }: EventScanRequest, scan: Scan<ExaminedRow>): void {
    for (let after = afterId; scan.remaining > 0; ) {
      const count = scan.takeNextCount();
      const rows = this.#events.all(merchantId, after, count) as ExaminedColumns[];
      for (const columns of rows) if (scan.remaining > 0) scan.examine(toExamined(columns), true);
      after = rows.at(-1)?.[0] ?? after;
      if (rows.length < count && scan.remaining > 0) scan.end();
    }
  }
}

function toExamined(row: ExaminedColumns): ExaminedRow {
  return {
    id: row[0],
    merchant_id: row[1],
    uplink_kind: row[2],
    bytes: row[3],
    received_at_ms: row[4],
    buffered: row[5],
  };
}
