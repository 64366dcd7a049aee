/**
 * Scans uplinks (contract/merchants/uplink-scan.ts) over one connection, in the thread of scan-thread.ts or in the
 * caller's. A row is converted and compared with its checksum only if it is wanted.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { PingFilter, ScannedUplinks } from '../../contract/merchants/uplink-scan.js';
import { isPing, MAX_CLOCK_AHEAD, Scan } from '../../log/scan.js';
import { IS_PING, UPLINK_COLUMNS, type UplinkRow } from '../../log/uplink-row.js';

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

export type ScanRequest = PingScanRequest | EventScanRequest;

/** A lock's uplinks in the index, newest first: the part of the log's index by lock before an id. */
export const PINGS_OF_LOCK = `SELECT ${UPLINK_COLUMNS}, d.merchant_id AS owner_id
  FROM uplink_of_device t JOIN uplink u ON u.id = t.uplink_id JOIN device d ON d.id = u.device_id
  WHERE t.device_id = ? AND t.uplink_id < ? AND t.uplink_id <= ? ORDER BY t.uplink_id DESC LIMIT ?`;
/** A merchant's pings after an id, oldest first. */
export const EVENTS_OF_MERCHANT = `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id
  WHERE u.merchant_id = ? AND u.id > ? AND ${IS_PING} ORDER BY u.id LIMIT ?`;
const UPLINK_BY_ID = `SELECT ${UPLINK_COLUMNS}, d.merchant_id AS owner_id
  FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.id = ?`;

/** A row with the lock's present merchant, who may be another than that of the uplink. */
type OwnedRow = UplinkRow & { readonly owner_id: number };

export class UplinkScanner {
  readonly #pings: Statement;
  readonly #events: Statement;
  readonly #byId: Statement;

  /** `db` is a reading connection. */
  constructor(db: Database) {
    this.#pings = db.prepare(PINGS_OF_LOCK);
    this.#events = db.prepare(EVENTS_OF_MERCHANT);
    this.#byId = db.prepare(UPLINK_BY_ID);
  }

  scan(request: ScanRequest): ScannedUplinks {
    const scan = new Scan(request);
    if (request.type === 'pings') this.#scanPings(request, scan);
    else this.#scanEvents(request, scan);
    return scan.result();
  }

  #scanPings({ deviceId, beforeId, indexedId, newerIds, filter }: PingScanRequest, scan: Scan): void {
    // Pings that were received before this time are too old, by whatever clock of the lock.
    const endMs = (filter.fromMs ?? Number.NEGATIVE_INFINITY) - MAX_CLOCK_AHEAD;
    const examine = (row: OwnedRow): void => {
      if (row.received_at_ms < endMs) scan.end();
      else scan.examine(row, isPing(row) && row.merchant_id === row.owner_id);
    };
    for (const id of [...newerIds].reverse()) {
      if (scan.remaining === 0) return;
      const row = id < beforeId ? (this.#byId.get(id) as OwnedRow | undefined) : undefined;
      if (row !== undefined) examine(row);
    }
    for (let before = beforeId; scan.remaining > 0; ) {
      const count = scan.nextCount;
      const rows = this.#pings.all(deviceId, before, indexedId, count) as OwnedRow[];
      for (const row of rows) if (scan.remaining > 0) examine(row);
      before = rows.at(-1)?.id ?? before;
      if (rows.length < count && scan.remaining > 0) scan.end();
    }
  }

  #scanEvents({ merchantId, afterId }: EventScanRequest, scan: Scan): void {
    for (let after = afterId; scan.remaining > 0; ) {
      const count = scan.nextCount;
      const rows = this.#events.all(merchantId, after, count) as UplinkRow[];
      for (const row of rows) if (scan.remaining > 0) scan.examine(row, true);
      after = rows.at(-1)?.id ?? after;
      if (rows.length < count && scan.remaining > 0) scan.end();
    }
  }
}
