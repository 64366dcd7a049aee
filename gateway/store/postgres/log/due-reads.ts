/** Reads which deliveries of a URL are due. */
import type { DueDelivery } from '../../contract/webhooks/delivery.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../log/uplink-row.js';
import { plannedOnce, roundUpLimit, type Sql } from '../sql.js';

/** At an ordered URL, only the oldest pending delivery of each lock is due. */
const IS_HEAD = `((SELECT w.ordered FROM webhook_url w WHERE w.id = y.url_id) = 0 OR NOT EXISTS (
  SELECT 1 FROM delivery o WHERE o.url_id = y.url_id AND o.state = 'pending' AND o.device_id = y.device_id
    AND o.uplink_id < y.uplink_id))`;

const NEXT_DUE = plannedOnce(
  `SELECT y.next_attempt_at_ms AS at FROM delivery y
   WHERE y.url_id = @urlId AND y.state = 'pending' AND y.uplink_id <> ALL(@except::bigint[]) AND ${IS_HEAD}
   ORDER BY y.next_attempt_at_ms, y.uplink_id LIMIT 1`,
);

export class DueReads {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async readDue(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]> {
    const statement = plannedOnce(
      `SELECT ${UPLINK_COLUMNS}, y.attempts, y.attempts_before FROM delivery y
       JOIN uplink u ON u.id = y.uplink_id JOIN device d ON d.id = u.device_id
       WHERE y.url_id = @urlId AND y.state = 'pending' AND y.next_attempt_at_ms <= @nowMs AND ${IS_HEAD}
       ORDER BY y.next_attempt_at_ms, y.uplink_id LIMIT ${roundUpLimit(limit)}`,
    );
    const values = { urlId, nowMs };
    const rows = await this.#sql.all<UplinkRow & { attempts: number; attempts_before: number }>(statement, values);
    // The rounded limit may give more rows than were asked for.
    return rows.slice(0, limit).map((row) => {
      return { uplink: toUplink(row), attempts: row.attempts, attemptsBefore: row.attempts_before };
    });
  }

  async nextDueAtMs(urlId: number, except: ReadonlySet<number>): Promise<number | null> {
    const row = await this.#sql.get<{ at: number }>(NEXT_DUE, { urlId, except: [...except] });
    return row?.at ?? null;
  }
}
