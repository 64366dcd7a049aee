/**
 * Counts the undelivered events (stored pings) of each webhook URL from the tables themselves, so that no separate
 * counter can become wrong. Counting takes some 0.3 µs an event, so it runs in a thread (figures-thread.ts).
 */
import type { Database, Statement } from 'better-sqlite3';
import type { UrlBacklog } from '../../contract/store-figures.js';

interface UrlRow {
  readonly id: number;
  readonly merchantId: number;
  readonly state: 'active' | 'disabled';
  /** The id before the URL's oldest event without an outcome. */
  readonly cursor: number;
}

interface Counts {
  readonly state: 'pending' | 'dead' | 'damaged';
  readonly count: number;
}

export class UrlBacklogs {
  readonly #urls: Statement;
  readonly #behind: Statement;
  readonly #outcomes: Statement;
  readonly #oldestBehind: Statement;
  readonly #oldestPending: Statement;
  readonly #counts: Statement;

  constructor(db: Database) {
    this.#urls = db.prepare('SELECT id, merchant_id AS merchantId, state, cursor FROM webhook_url ORDER BY id');
    this.#behind = db
      .prepare('SELECT count(*) FROM uplink WHERE id > @cursor AND merchant_id = @merchantId AND kind > 0')
      .pluck();
    // Some events after the cursor already have an outcome: a failed event has a row, a delivered event an attempt.
    const outcomes = `SELECT uplink_id FROM delivery WHERE url_id = @id AND uplink_id > @cursor UNION
      SELECT uplink_id FROM attempt WHERE url_id = @id AND uplink_id > @cursor AND error IS NULL`;
    this.#outcomes = db
      .prepare(
        `SELECT count(*) FROM (${outcomes}) o JOIN uplink u ON u.id = o.uplink_id
         WHERE u.merchant_id = @merchantId AND u.kind > 0`,
      )
      .pluck();
    this.#oldestBehind = db
      .prepare(
        `SELECT received_at_ms FROM uplink
         WHERE id > @cursor AND merchant_id = @merchantId AND kind > 0 AND id NOT IN (${outcomes})
         ORDER BY id LIMIT 1`,
      )
      .pluck();
    // Ids grow with the time of receipt, so the lowest id is the oldest event.
    this.#oldestPending = db
      .prepare(
        `SELECT received_at_ms FROM uplink WHERE id = (
           SELECT uplink_id FROM delivery INDEXED BY delivery_by_state
           WHERE url_id = @id AND state = 'pending' ORDER BY uplink_id LIMIT 1)`,
      )
      .pluck();
    this.#counts = db.prepare(
      `SELECT state, count(*) AS count FROM delivery INDEXED BY delivery_by_state
       WHERE url_id = @id AND state IN ('pending', 'dead', 'damaged') GROUP BY state`,
    );
  }

  /** Returns the backlog of every URL, also of disabled URLs, ordered by id. */
  read(): UrlBacklog[] {
    return (this.#urls.all() as UrlRow[]).map((url) => this.#readUrl(url));
  }

  #readUrl(url: UrlRow): UrlBacklog {
    const counts = new Map((this.#counts.all(url) as Counts[]).map(({ state, count }) => [state, count]));
    const behind = (this.#behind.get(url) as number) - (this.#outcomes.get(url) as number);
    const oldestTimes = [
      behind > 0 ? (this.#oldestBehind.get(url) as number | undefined) : undefined,
      counts.has('pending') ? (this.#oldestPending.get(url) as number | undefined) : undefined,
    ].filter((each) => each !== undefined);
    return {
      urlId: url.id,
      isDisabled: url.state === 'disabled',
      behind,
      pending: counts.get('pending') ?? 0,
      dead: counts.get('dead') ?? 0,
      damaged: counts.get('damaged') ?? 0,
      oldestReceivedAtMs: oldestTimes.length === 0 ? null : Math.min(...oldestTimes),
    };
  }
}
