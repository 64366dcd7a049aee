/**
 * Counts deliveries of one URL in a range of uplink ids, in hand-written SQL that reads indexes and no stored ping's
 * bytes. A slice ends after a limited number of attempted events; those that wait or are dead are all counted.
 */
import type { Database, Statement } from 'better-sqlite3';
import { DENSE_SLOT, idInSlot } from '../../../contract/log/log-position.js';
import type { AttemptedCounts, CountedRange, PingCount } from '../../../contract/webhook-store.js';
import { IS_PING } from '../../../log/uplink-row.js';

export class DeliveryCounts {
  readonly #attempted: Statement;
  readonly #inState: Statement;
  readonly #events: Statement;

  constructor(db: Database) {
    this.#attempted = db.prepare(
      `SELECT count(*) AS events, total(attempts) AS attempts, max(uplink_id) AS lastId FROM (
         SELECT uplink_id, count(*) AS attempts FROM attempt INDEXED BY attempt_by_event
         WHERE url_id = @urlId AND uplink_id > @afterId AND uplink_id <= @toId
         GROUP BY uplink_id ORDER BY uplink_id LIMIT @limit)`,
    );
    this.#inState = db.prepare(
      `SELECT count(*) AS events, total(attempts > 0) AS attempted FROM (
         SELECT y.attempts FROM delivery y INDEXED BY delivery_by_state
         WHERE y.url_id = @urlId AND y.state = @state AND y.uplink_id > @afterId AND y.uplink_id <= @toId)`,
    );
    this.#events = db.prepare(
      `SELECT count(*) AS count, max(id) AS lastId FROM (
         SELECT u.id FROM uplink u JOIN webhook_url w ON w.merchant_id = u.merchant_id
         WHERE w.id = @urlId AND u.id > @afterId AND u.id <= @toId AND ${IS_PING} ORDER BY u.id LIMIT @limit)`,
    );
  }

  /** Counts the attempted and delivered events of a range, and all pending and dead ones, attempted or not. */
  attempted(urlId: number, counted: CountedRange): AttemptedCounts {
    const range = denseRange(counted);
    const found = this.#attempted.get({ urlId, ...range }) as {
      events: number;
      attempts: number;
      lastId: number | null;
    };
    // With fewer events than the limit, the whole range was counted; otherwise up to the last counted event.
    const isWhole = found.events < range.limit || found.lastId === null;
    const lastId = isWhole ? counted.toId : (found.lastId ?? counted.toId);
    const inState = (state: string) =>
      this.#inState.get({ urlId, state, ...range, toId: Math.min(lastId, range.toId) }) as {
        events: number;
        attempted: number;
      };
    const [pending, dead, damaged] = [inState('pending'), inState('dead'), inState('damaged')];
    const undelivered = pending.attempted + dead.attempted + damaged.attempted;
    return {
      lastId,
      attempted: found.events,
      attempts: found.attempts,
      // The counts are read one after the other, so a commit in between could make the difference negative.
      delivered: Math.max(found.events - undelivered, 0),
      pending: pending.events,
      dead: dead.events + damaged.events,
    };
  }

  /** Counts the merchant's pings in a range, whether they were attempted or not. */
  pings(urlId: number, counted: CountedRange): PingCount {
    const range = denseRange(counted);
    const { count, lastId } = this.#events.get({ urlId, ...range }) as { count: number; lastId: number | null };
    return { count, lastId: count < range.limit || lastId === null ? counted.toId : lastId };
  }
}

/**
 * The range in ids alone. `after` and `before` are positions in a log with several slots, parts that gateways write;
 * the log of SQLite has only one.
 */
function denseRange({ afterId, toId, after, before, limit }: CountedRange) {
  return {
    afterId: after === undefined ? afterId : Math.max(afterId, idInSlot(after, DENSE_SLOT)),
    toId: before === undefined ? toId : Math.min(toId, idInSlot(before, DENSE_SLOT)),
    limit,
  };
}
