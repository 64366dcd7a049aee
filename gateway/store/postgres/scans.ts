/** Scans of uplinks: the database filters by key and place, this process by content. */
import { StoreFailure } from '../contract/errors.js';
import { movedAfter } from '../contract/log/log-position.js';
import type {
  EventScan,
  PingScan,
  ScannedEvents,
  ScannedUplinks,
  ScanStore,
} from '../contract/merchants/uplink-scan.js';
import { isPing, MAX_CLOCK_AHEAD, Scan } from '../log/scan.js';
import { IS_PING, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../log/uplink-row.js';
import { idIn, positionJson } from './position.js';
import type { Sql } from './sql.js';

/** An uplink with the lock's present merchant; `merchant_id` is the merchant when it was sent. */
type OwnedRow = UplinkRow & { readonly owner_id: number };

export class Scans implements ScanStore {
  readonly #sql: Sql;
  /** The last scan: scans take turns, so that they leave connections to other reads. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  pings(request: PingScan): Promise<ScannedUplinks> {
    return this.#inTurn('read pings', request.signal, () => this.#pings(request));
  }

  events(request: EventScan): Promise<ScannedEvents> {
    return this.#inTurn('read events', request.signal, () => this.#events(request));
  }

  #inTurn<T>(action: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    const result = this.#last.then(async () => {
      signal?.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (signal?.aborted) throw error;
        throw new StoreFailure(action, error);
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #pings(request: PingScan): Promise<ScannedUplinks> {
    const { deviceId, beforeId = Number.MAX_SAFE_INTEGER, filter } = request;
    const scan = new Scan<OwnedRow>(request);
    // Pings that were received before this time are too old, by whatever clock of the lock.
    const endMs = (filter.fromMs ?? Number.NEGATIVE_INFINITY) - MAX_CLOCK_AHEAD;
    for (let before = beforeId; scan.remaining > 0; ) {
      const count = scan.takeNextCount();
      const rows = await this.#sql.all<OwnedRow>(
        `SELECT ${UPLINK_COLUMNS}, d.merchant_id AS owner_id FROM uplink u JOIN device d ON d.id = u.device_id
         WHERE u.device_id = @deviceId AND u.id < @before ORDER BY u.id DESC LIMIT @count`,
        { deviceId, before, count },
      );
      for (const row of rows) {
        if (scan.remaining === 0) break;
        if (row.received_at_ms < endMs) scan.end();
        else scan.examine(row, isPing(row) && row.merchant_id === row.owner_id);
      }
      before = rows.at(-1)?.id ?? before;
      if (rows.length < count && scan.remaining > 0) scan.end();
    }
    return scan.result(toUplink);
  }

  async #events(request: EventScan): Promise<ScannedEvents> {
    const { merchantId, after } = request;
    const scan = new Scan<UplinkRow>(request);
    let end = after;
    while (scan.remaining > 0) {
      const count = scan.takeNextCount();
      const rows = await this.#sql.all<UplinkRow>(
        `SELECT ${UPLINK_COLUMNS} FROM node s CROSS JOIN LATERAL (
           SELECT * FROM uplink u WHERE u.merchant_id = @merchantId AND u.slot = s.slot
             AND u.id > ${idIn('@after::jsonb', 's.slot')} AND ${IS_PING} ORDER BY u.id LIMIT @count) u
         JOIN device d ON d.id = u.device_id ORDER BY u.id LIMIT @count`,
        { merchantId, after: positionJson(end), count },
      );
      for (const row of rows) {
        if (scan.remaining === 0) break;
        scan.examine(row, true);
        end = movedAfter(end, row.id);
      }
      if (rows.length < count && scan.remaining > 0) scan.end();
    }
    const { lastId: _last, lastReceivedAtMs: _at, ...found } = scan.result(toUplink);
    return { ...found, end };
  }
}
