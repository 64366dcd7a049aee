/**
 * Reads and counts deliveries for operators. A delivery that succeeded at its first attempt has no row in `delivery`;
 * the state of an event without a row follows from its place in the log and from its attempts. After the URL's cursor
 * (the place up to which every event has an outcome) it is pending, or, at a disabled URL, kept: not sent, but can be
 * sent later. In a gap (uplinks that the cursor skipped when a disabled URL was enabled) it is kept. In both places,
 * and at a URL that has or had a filter, it is delivered if an attempt succeeded. Anywhere else it is delivered, but
 * for events before the URL's start, the place from which on it gets events: these it never gets.
 */

import type { Labels } from '../../../contract/devices/device-labels.js';
import { LOG_START, type LogPosition } from '../../../contract/log/log-position.js';
import type { StoredUplink } from '../../../contract/log/stored-uplink.js';
import type {
  AttemptedCounts,
  CountedRange,
  DeliveryFilter,
  DeliveryReading,
  DeliveryState,
  PingCount,
  StoredAttempt,
} from '../../../contract/webhook-store.js';
import {
  type AttemptFigures,
  type AttemptSummary,
  type SummedAttempts,
  sumUpAttempts,
} from '../../../contract/webhooks/attempt-figures.js';
import { passesFilter, type WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import type { WebhookUrl } from '../../../contract/webhooks/webhook-url.js';
import { IS_PING, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../../log/uplink-row.js';
import { readLabels } from '../../../tables/devices/label-column.js';
import { idIn, positionJson, slotOfId } from '../../position.js';
import type { Sql } from '../../sql.js';

interface RowOfDelivery extends UplinkRow {
  next_attempt_at_ms: number | null;
  /** Attempts before the event was last resent. */
  attempts_before: number;
}

type DeliveryWithoutAttempts = Omit<DeliveryReading, 'attempts'>;

const HAS_NO_ROW = 'NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = @urlId AND y.uplink_id = u.id)';
export const HAS_SUCCEEDED =
  'EXISTS (SELECT 1 FROM attempt a WHERE a.url_id = @urlId AND a.uplink_id = u.id AND a.error IS NULL)';
const IS_AFTER_CURSOR = `u.id > ${idIn('@cursor::jsonb', 'u.slot')}`;
const IS_AFTER_START = `u.id > ${idIn('@started::jsonb', 'u.slot')}`;
const IS_IN_GAP = `EXISTS (SELECT 1 FROM webhook_gap g WHERE g.url_id = @urlId AND g.slot = u.slot
  AND u.id > g.after_id AND u.id <= g.until_id)`;
/** Pings, and events of other kinds: all but acknowledgements of commands (0) and erased uplinks (-1). */
const IS_EVENT = 'u.kind > 0';
/** Without a filter, only pings are for the URL; but an earlier filter may have let other events be sent. */
const IS_FOR_URL = `(@isFiltered OR ${IS_PING})`;

/** What the cursor passed was sent, unless a filter left it out. */
const IS_DELIVERED = `(${HAS_SUCCEEDED} AND (${IS_AFTER_CURSOR} OR ${IS_IN_GAP} OR ${IS_AFTER_START})
  OR NOT @wasFiltered AND ${IS_FOR_URL} AND NOT ${IS_AFTER_CURSOR} AND NOT ${IS_IN_GAP} AND ${IS_AFTER_START})`;
const IS_WAITING = `(NOT ${HAS_SUCCEEDED} AND ${IS_FOR_URL} AND ${IS_AFTER_CURSOR})`;
const IS_KEPT = `(NOT ${HAS_SUCCEEDED} AND ${IS_FOR_URL} AND ${IS_IN_GAP})`;

export class DeliveryReads {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns the newest deliveries of one URL that match the filter, with their attempts. */
  async read(url: WebhookUrl, filter: DeliveryFilter): Promise<DeliveryReading[]> {
    const found: DeliveryWithoutAttempts[] = [];
    for (const state of filter.states) {
      if (state !== 'kept') found.push(...(await this.#withRow(url, state, filter)));
      found.push(...(await this.#withoutRow(url, state, filter)));
    }
    const newest = found.sort((a, b) => b.uplink.id - a.uplink.id).slice(0, filter.limit);
    const attempts = await this.#readAttempts(url.id, newest);
    return newest.map((delivery) => ({ ...delivery, attempts: attempts.get(delivery.uplink.id) ?? [] }));
  }

  async sumUpNewestAttempts(urlId: number, { limit, sinceMs }: SummedAttempts): Promise<AttemptFigures> {
    const attempts = await this.#sql.all<AttemptSummary>(
      `SELECT at_ms AS "atMs", duration_ms AS "durationMs", status, error FROM attempt
       WHERE url_id = @urlId ORDER BY uplink_id DESC LIMIT @limit`,
      { urlId, limit },
    );
    return sumUpAttempts(attempts, sinceMs);
  }

  /** Returns those of the events that pass, by the present labels of their locks, in their order. */
  async selectPassing<Event extends StoredUplink>(filter: WebhookFilter, events: readonly Event[]): Promise<Event[]> {
    const rows = await this.#sql.all<{ id: number; labels: string | null }>(
      'SELECT id, labels FROM device WHERE id = ANY(@ids::bigint[])',
      { ids: [...new Set(events.map(({ deviceId }) => deviceId))] },
    );
    const labels = new Map<number, Labels>(rows.map((row) => [row.id, readLabels(row.labels)]));
    return events.filter((event) => passesFilter(filter, event, (id) => labels.get(id) ?? readLabels(null)));
  }

  async #readAttempts(
    urlId: number,
    deliveries: readonly DeliveryWithoutAttempts[],
  ): Promise<Map<number, StoredAttempt[]>> {
    const rows = await this.#sql.all<StoredAttempt & { uplink_id: number }>(
      `SELECT uplink_id, number, at_ms AS "atMs", duration_ms AS "durationMs", status, error, answer FROM attempt
       WHERE url_id = @urlId AND uplink_id = ANY(@ids::bigint[]) ORDER BY id`,
      { urlId, ids: deliveries.map(({ uplink }) => uplink.id) },
    );
    const attempts = new Map<number, StoredAttempt[]>();
    for (const { uplink_id: id, ...attempt } of rows) attempts.set(id, [...(attempts.get(id) ?? []), attempt]);
    return attempts;
  }

  async #withRow(
    url: WebhookUrl,
    state: DeliveryState,
    { deviceId, fromId, toId, limit }: DeliveryFilter,
  ): Promise<DeliveryWithoutAttempts[]> {
    const ofLock = deviceId === undefined ? '' : 'AND u.device_id = @deviceId';
    const rows = await this.#sql.all<RowOfDelivery>(
      `SELECT ${UPLINK_COLUMNS}, y.next_attempt_at_ms, y.attempts_before FROM delivery y
       JOIN uplink u ON u.id = y.uplink_id JOIN device d ON d.id = u.device_id
       WHERE y.url_id = @urlId AND y.state = @state AND y.uplink_id BETWEEN @fromId AND @toId ${ofLock}
       ORDER BY y.uplink_id DESC LIMIT @limit`,
      { urlId: url.id, state, deviceId, fromId, toId, limit },
    );
    return rows.map((row) => {
      const { next_attempt_at_ms: nextAttemptAtMs, attempts_before: attemptsBefore } = row;
      return { urlId: url.id, uplink: toUplink(row), state, nextAttemptAtMs, attemptsBefore };
    });
  }

  async #withoutRow(url: WebhookUrl, state: DeliveryState, filter: DeliveryFilter): Promise<DeliveryWithoutAttempts[]> {
    const conditions: string[] = [];
    if (state === 'delivered') conditions.push(IS_DELIVERED);
    if (state === (url.state === 'active' ? 'pending' : 'kept')) conditions.push(IS_WAITING);
    if (state === 'kept') conditions.push(IS_KEPT);
    if (conditions.length === 0) return [];
    const condition = `(${conditions.join(' OR ')})`;
    const isChosen = url.filter !== null && state !== 'delivered';
    const found = await (isChosen ? this.#passing(url, condition, filter) : this.#events(url, condition, filter));
    return found.map((uplink) => ({ urlId: url.id, uplink, state, nextAttemptAtMs: null, attemptsBefore: 0 }));
  }

  /** Reads events that pass the URL's filter, page by page. */
  async #passing(url: WebhookUrl, condition: string, filter: DeliveryFilter): Promise<StoredUplink[]> {
    const found: StoredUplink[] = [];
    for (let { toId } = filter; toId >= filter.fromId && found.length < filter.limit; ) {
      const events = await this.#events(url, condition, { ...filter, toId });
      found.push(...(await this.selectPassing(url.filter as WebhookFilter, events)));
      if (events.length < filter.limit) break;
      toId = (events.at(-1)?.id ?? filter.fromId) - 1;
    }
    return found.slice(0, filter.limit);
  }

  async #events(url: WebhookUrl, condition: string, filter: DeliveryFilter): Promise<StoredUplink[]> {
    const { deviceId, fromId, toId, limit } = filter;
    const ofLock = deviceId === undefined ? '' : 'AND u.device_id = @deviceId';
    const rows = await this.#sql.all<UplinkRow>(
      `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id
       WHERE u.merchant_id = @merchantId AND ${IS_EVENT} AND u.id BETWEEN @fromId AND @toId ${ofLock}
         AND ${HAS_NO_ROW} AND ${condition}
       ORDER BY u.id DESC LIMIT @limit`,
      {
        ...{ urlId: url.id, merchantId: url.merchantId, deviceId, fromId, toId, limit },
        ...{ cursor: positionJson(url.cursor), started: positionJson(url.startedAfter) },
        ...{ isFiltered: url.filter !== null, wasFiltered: url.wasFiltered },
      },
    );
    return rows.map(toUplink);
  }

  /** Counts the attempted and delivered events of a range, and all pending and dead ones, attempted or not. */
  async countAttempted(urlId: number, counted: CountedRange): Promise<AttemptedCounts> {
    const range = rangeValues(counted);
    const found = await this.#sql.get<{ events: number; attempts: number; last_id: number | null }>(
      `SELECT count(*) AS events, coalesce(sum(attempts), 0) AS attempts, max(uplink_id) AS last_id FROM (
         SELECT uplink_id, count(*) AS attempts FROM attempt
         WHERE url_id = @urlId AND uplink_id > @afterId AND uplink_id <= @toId AND ${isInRange(counted, 'uplink_id')}
         GROUP BY uplink_id ORDER BY uplink_id LIMIT @limit) n`,
      { urlId, ...range },
    );
    const { events = 0, attempts = 0, last_id: last = null } = found ?? {};
    const lastId = events < counted.limit || last === null ? counted.toId : last;
    const counts = await this.#sql.all<{ state: string; events: number; attempted: number }>(
      `SELECT state, count(*) AS events, count(*) FILTER (WHERE attempts > 0) AS attempted FROM delivery
       WHERE url_id = @urlId AND state IN ('pending', 'dead', 'damaged') AND uplink_id > @afterId
         AND uplink_id <= @toId AND ${isInRange(counted, 'uplink_id')} GROUP BY state`,
      { urlId, ...range, toId: lastId },
    );
    const of = (state: string) => counts.find((row) => row.state === state)?.events ?? 0;
    const undelivered = counts.reduce((sum, { attempted }) => sum + attempted, 0);
    return {
      lastId,
      attempted: events,
      attempts,
      // The counts are read one after the other, so a commit in between could make the difference negative.
      delivered: Math.max(events - undelivered, 0),
      pending: of('pending'),
      dead: of('dead') + of('damaged'),
    };
  }

  /** Counts the merchant's pings in a range. */
  async countPings(urlId: number, counted: CountedRange): Promise<PingCount> {
    const found = await this.#sql.get<{ count: number; last_id: number | null }>(
      `SELECT count(*) AS count, max(id) AS last_id FROM (
         SELECT u.id FROM uplink u JOIN webhook_url w ON w.merchant_id = u.merchant_id
         WHERE w.id = @urlId AND u.id > @afterId AND u.id <= @toId AND ${isInRange(counted, 'u.id')} AND ${IS_PING}
         ORDER BY u.id LIMIT @limit) n`,
      { urlId, ...rangeValues(counted) },
    );
    const { count = 0, last_id: last = null } = found ?? {};
    return { count, lastId: count < counted.limit || last === null ? counted.toId : last };
  }
}

function rangeValues({ afterId, toId, after, before, limit }: CountedRange) {
  const json = (position: LogPosition | undefined): string => positionJson(position ?? LOG_START);
  return { afterId, toId, limit, after: json(after), before: json(before) };
}

/** A condition that an id is between the positions of a range. */
function isInRange({ after, before }: Pick<CountedRange, 'after' | 'before'>, id: string): string {
  const conditions = ['true'];
  if (after !== undefined) conditions.push(`${id} > ${idIn('@after::jsonb', slotOfId(id))}`);
  if (before !== undefined) conditions.push(`${id} <= ${idIn('@before::jsonb', slotOfId(id))}`);
  return conditions.join(' AND ');
}
