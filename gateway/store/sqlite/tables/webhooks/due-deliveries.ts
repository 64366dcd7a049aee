/**
 * Finds the due deliveries of a URL, in hand-written SQL. An ordered URL receives each lock's events one after the
 * other, so only the oldest pending delivery of each lock may be due. An index finds that delivery for each lock, so
 * that a lock's long queue costs no more than a short one.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { DueDelivery } from '../../../contract/webhooks/delivery.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../../log/uplink-row.js';

/** `attempts_before`: how many of the attempts were made before the event was last resent. */
type DueRow = UplinkRow & { attempts: number; attempts_before: number };

/** The oldest pending delivery ("head") of each lock; each costs two index lookups. */
const HEADS = `WITH RECURSIVE lock (device_id) AS (
    SELECT min(device_id) FROM delivery INDEXED BY delivery_by_lock WHERE url_id = @urlId AND state = 'pending'
    UNION ALL
    SELECT (SELECT min(device_id) FROM delivery INDEXED BY delivery_by_lock
      WHERE url_id = @urlId AND state = 'pending' AND device_id > lock.device_id)
    FROM lock WHERE lock.device_id IS NOT NULL),
  head (uplink_id) AS (
    SELECT (SELECT min(uplink_id) FROM delivery INDEXED BY delivery_by_lock
      WHERE url_id = @urlId AND state = 'pending' AND device_id = lock.device_id)
    FROM lock WHERE lock.device_id IS NOT NULL)`;

const HEAD_DELIVERY = 'JOIN delivery y ON y.url_id = @urlId AND y.uplink_id = head.uplink_id';
const IS_PENDING = `y.url_id = @urlId AND y.state = 'pending'`;

export class DueDeliveries {
  readonly #isOrdered: Statement;
  readonly #due: Statement;
  readonly #nextDue: Statement;
  readonly #dueHeads: Statement;
  readonly #nextDueHeads: Statement;

  constructor(db: Database) {
    this.#isOrdered = db.prepare('SELECT ordered FROM webhook_url WHERE id = ?').pluck();
    const columns = `${UPLINK_COLUMNS}, y.attempts, y.attempts_before`;
    const uplinks = 'JOIN uplink u ON u.id = y.uplink_id JOIN device d ON d.id = u.device_id';
    const isDue = 'y.next_attempt_at_ms <= @nowMs ORDER BY y.next_attempt_at_ms, y.uplink_id LIMIT @limit';
    this.#due = db.prepare(
      `SELECT ${columns} FROM delivery y INDEXED BY delivery_due ${uplinks} WHERE ${IS_PENDING} AND ${isDue}`,
    );
    this.#dueHeads = db.prepare(`${HEADS} SELECT ${columns} FROM head ${HEAD_DELIVERY} ${uplinks} WHERE ${isDue}`);
    const orderByTime = 'ORDER BY y.next_attempt_at_ms, y.uplink_id LIMIT @limit';
    const select = 'SELECT y.uplink_id AS id, y.next_attempt_at_ms AS atMs';
    this.#nextDue = db.prepare(`${select} FROM delivery y INDEXED BY delivery_due WHERE ${IS_PENDING} ${orderByTime}`);
    this.#nextDueHeads = db.prepare(`${HEADS} ${select} FROM head ${HEAD_DELIVERY} ${orderByTime}`);
  }

  /** Returns the deliveries due by `nowMs`, longest due first. */
  read(urlId: number, nowMs: number, limit: number): DueDelivery[] {
    const rows = this.#choose(urlId, this.#due, this.#dueHeads).all({ urlId, nowMs, limit }) as DueRow[];
    return rows.map((row) => {
      return { uplink: toUplink(row), attempts: row.attempts, attemptsBefore: row.attempts_before };
    });
  }

  /** Returns when the next delivery is due, except for these uplink ids; null if none waits. */
  nextAtMs(urlId: number, except: ReadonlySet<number>): number | null {
    const statement = this.#choose(urlId, this.#nextDue, this.#nextDueHeads);
    const rows = statement.all({ urlId, limit: except.size + 1 }) as { id: number; atMs: number }[];
    return rows.find(({ id }) => !except.has(id))?.atMs ?? null;
  }

  /** The statement for the URL: an ordered URL needs another one. */
  #choose(urlId: number, ofAnyUrl: Statement, ofOrderedUrl: Statement): Statement {
    return this.#isOrdered.get(urlId) === 1 ? ofOrderedUrl : ofAnyUrl;
  }
}
