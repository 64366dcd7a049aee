/**
 * Counts the undelivered events (stored pings) of each webhook URL from the tables themselves, so that no separate
 * counter can become wrong. Events that the URL's filter leaves out do not count. Counting takes some 0.3 µs an event,
 * so it runs in a thread (figures-thread.ts); under a filter the first count takes more (passing-blocks.ts).
 */
import type { Database, Statement } from 'better-sqlite3';
import type { UrlBacklog } from '../../contract/store-figures.js';
import { NO_FILTER, type WebhookFilter } from '../../contract/webhooks/webhook-filter.js';
import { IS_PING } from '../../log/uplink-row.js';
import { PassingBlocks } from './passing-blocks.js';

interface UrlRow {
  readonly id: number;
  readonly merchantId: number;
  readonly state: 'active' | 'disabled';
  /** The id before the URL's oldest event without an outcome. */
  readonly cursor: number;
  /** JSON of the URL's filter; null if it gets all pings. */
  readonly filter: string | null;
}

/**
 * Events after the cursor without an outcome, and when the oldest was received, by the run's clock (wall-clock time,
 * except in a sped-up simulation).
 */
interface Behind {
  readonly count: number;
  readonly oldestReceivedAtMs: number | undefined;
}

/** How many deliveries of a URL have a state. */
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
  readonly #outcomeIds: Statement;
  readonly #receivedAtMs: Statement;
  readonly #passing: PassingBlocks;

  constructor(db: Database) {
    this.#passing = new PassingBlocks(db);
    this.#urls = db.prepare('SELECT id, merchant_id AS merchantId, state, cursor, filter FROM webhook_url ORDER BY id');
    this.#behind = db
      .prepare(`SELECT count(*) FROM uplink u WHERE id > @cursor AND merchant_id = @merchantId AND ${IS_PING}`)
      .pluck();
    // Some events after the cursor already have an outcome: a failed event has a row, a delivered event an attempt.
    const outcomes = `SELECT uplink_id FROM delivery WHERE url_id = @id AND uplink_id > @cursor UNION
      SELECT uplink_id FROM attempt WHERE url_id = @id AND uplink_id > @cursor AND error IS NULL`;
    this.#outcomeIds = db.prepare(outcomes).pluck();
    this.#receivedAtMs = db.prepare('SELECT received_at_ms FROM uplink WHERE id = ?').pluck();
    this.#outcomes = db
      .prepare(
        `SELECT count(*) FROM (${outcomes}) o JOIN uplink u ON u.id = o.uplink_id
         WHERE u.merchant_id = @merchantId AND ${IS_PING}`,
      )
      .pluck();
    this.#oldestBehind = db
      .prepare(
        `SELECT received_at_ms FROM uplink u
         WHERE id > @cursor AND merchant_id = @merchantId AND ${IS_PING} AND id NOT IN (${outcomes})
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
    const urls = this.#urls.all() as UrlRow[];
    this.#passing.keepOnly(new Set(urls.filter(({ filter }) => filter !== null).map(({ id }) => id)));
    return urls.map((url) => this.#readUrl(url));
  }

  #readUrl(url: UrlRow): UrlBacklog {
    const counts = new Map((this.#counts.all(url) as Counts[]).map(({ state, count }) => [state, count]));
    const behind = url.filter === null ? this.#readBehind(url) : this.#readBehindFiltered(url, url.filter);
    const oldestTimes = [
      behind.oldestReceivedAtMs,
      counts.has('pending') ? (this.#oldestPending.get(url) as number | undefined) : undefined,
    ].filter((each) => each !== undefined);
    return {
      urlId: url.id,
      isDisabled: url.state === 'disabled',
      behind: behind.count,
      pending: counts.get('pending') ?? 0,
      dead: counts.get('dead') ?? 0,
      damaged: counts.get('damaged') ?? 0,
      oldestReceivedAtMs: oldestTimes.length === 0 ? null : Math.min(...oldestTimes),
    };
  }

  #readBehind(url: UrlRow): Behind {
    const count = (this.#behind.get(url) as number) - (this.#outcomes.get(url) as number);
    const oldest = count > 0 ? (this.#oldestBehind.get(url) as number | undefined) : undefined;
    return { count, oldestReceivedAtMs: oldest };
  }

  #readBehindFiltered(url: UrlRow, filter: string): Behind {
    const { id, merchantId, cursor } = url;
    const parsed = JSON.parse(filter) as Partial<WebhookFilter>;
    const passing = this.#passing.after({ id, merchantId, filter: { ...NO_FILTER, ...parsed } }, cursor);
    const outcomes = new Set(this.#outcomeIds.all(url) as number[]);
    let count = passing.count();
    for (const outcomeId of outcomes) if (passing.has(outcomeId)) count -= 1;
    const oldestId = count > 0 ? passing.firstExcept(outcomes) : undefined;
    const oldest = oldestId === undefined ? undefined : (this.#receivedAtMs.get(oldestId) as number);
    return { count, oldestReceivedAtMs: oldest };
  }
}
