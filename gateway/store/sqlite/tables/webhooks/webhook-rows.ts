/**
 * Reads deliveries for operators, in hand-written SQL. Changes nothing.
 *
 * A delivery that succeeded at its first attempt has no row in the table `delivery`. The state of an event without a
 * row follows from its place in the log and from its attempts. After the URL's cursor (the uplink up to which every
 * event has an outcome) the event is pending, or, at a disabled URL, kept: not sent, but can be sent later. In a gap
 * (uplinks that the cursor skipped when a disabled URL was enabled) the event is kept. In both places it counts as
 * delivered if an attempt succeeded. Anywhere else it is delivered; at a URL that has or had a filter, only if an
 * attempt succeeded, since the cursor passes what the filter leaves out. There are few such ranges, and each is read
 * backwards by an index, so that reading the newest deliveries costs the same in a small log and a large one.
 */
import type { Database, Statement } from 'better-sqlite3';
import { DENSE_SLOT, idInSlot } from '../../../contract/log/log-position.js';
import type { StoredUplink } from '../../../contract/log/stored-uplink.js';
import type { DeliveryFilter, DeliveryReading, DeliveryState, StoredAttempt } from '../../../contract/webhook-store.js';
import type { AttemptSummary } from '../../../contract/webhooks/attempt-figures.js';
import { FIRST_EVENT_KIND } from '../../../contract/webhooks/merchant-event.js';
import type { WebhookUrl } from '../../../contract/webhooks/webhook-url.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../../log/uplink-row.js';
import type { UplinkMemtable } from '../../log/memtable/uplink-memtable.js';
import type { PassingEvents } from './passing-events.js';

/** A range of uplink ids, both ends included. */
interface IdRange {
  readonly from: number;
  readonly to: number;
}

/** Uplinks that a URL's cursor skipped, so that their events were not sent: after `afterId` up to `untilId`. */
export interface Gap {
  readonly afterId: number;
  readonly untilId: number;
}

/** What a URL's deliveries are read by. */
export type UrlOfDeliveries = Pick<
  WebhookUrl,
  'id' | 'merchantId' | 'state' | 'cursor' | 'startedAfter' | 'filter' | 'wasFiltered'
>;

/** A row of `delivery` with its uplink. */
interface RowOfDelivery extends UplinkRow {
  next_attempt_at_ms: number | null;
  attempts_before: number;
}

/** A delivery whose attempts are not read yet. */
type DeliveryWithoutAttempts = Omit<DeliveryReading, 'attempts'>;

// Conditions in SQL.
const IS_OF_LOCK = '(@deviceId IS NULL OR u.device_id = @deviceId)';
const HAS_NO_ROW = 'NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = @urlId AND y.uplink_id = u.id)';
const HAS_SUCCEEDED =
  'EXISTS (SELECT 1 FROM attempt a WHERE a.url_id = @urlId AND a.uplink_id = u.id AND a.error IS NULL)';

/**
 * Reads a merchant's events in a range that succeeded at a URL and have no row. Starts from the attempts: after the
 * cursor of a disabled URL there may be a million events without any. (With BETWEEN, SQLite uses one of the two
 * limits.) Of several successes the first one counts, so that each event comes once. Exported for the test of its plan.
 */
export const SUCCEEDED_EVENTS = `SELECT ${UPLINK_COLUMNS}
  FROM attempt a INDEXED BY attempt_by_event CROSS JOIN uplink u ON u.id = a.uplink_id
  JOIN device d ON d.id = u.device_id
  WHERE a.url_id = @urlId AND a.uplink_id >= @from AND a.uplink_id <= @to AND a.error IS NULL
  AND NOT EXISTS (SELECT 1 FROM attempt e INDEXED BY attempt_by_event
    WHERE e.url_id = a.url_id AND e.uplink_id = a.uplink_id AND e.error IS NULL AND e.id < a.id)
  AND +u.merchant_id = @merchantId AND u.kind > 0 AND u.kind < @kindsBelow AND ${HAS_NO_ROW}
  ORDER BY a.uplink_id DESC LIMIT @limit`;

/** Reads the attempts at a URL's newest attempted events. Exported for the test of its plan. */
export const NEWEST_ATTEMPTS = `SELECT at_ms AS atMs, duration_ms AS durationMs, status, error
  FROM attempt INDEXED BY attempt_by_event WHERE url_id = ? ORDER BY uplink_id DESC LIMIT ?`;

export class DeliveryReader {
  readonly #rows: Statement;
  /** Events without a row: all, those with a successful attempt, and those without one. */
  readonly #withoutRowOf: Readonly<
    Record<
      'any' | 'succeeded' | 'unsuccessful',
      { readonly ofMerchant: Statement; readonly ofLock: Statement; readonly byId: Statement }
    >
  >;
  readonly #attempts: Statement;
  readonly #newestAttempts: Statement;
  readonly #memtable: Pick<UplinkMemtable, 'idsOf' | 'indexedId'>;
  readonly #passing: PassingEvents;

  constructor(db: Database, memtable: Pick<UplinkMemtable, 'idsOf' | 'indexedId'>, passing: PassingEvents) {
    this.#memtable = memtable;
    this.#passing = passing;
    this.#rows = db.prepare(
      `SELECT ${UPLINK_COLUMNS}, y.next_attempt_at_ms, y.attempts_before FROM delivery y INDEXED BY delivery_by_state
       JOIN uplink u ON u.id = y.uplink_id JOIN device d ON d.id = u.device_id
       WHERE y.url_id = @urlId AND y.state = @state AND y.uplink_id BETWEEN @from AND @to AND ${IS_OF_LOCK}
       ORDER BY y.uplink_id DESC LIMIT @limit`,
    );
    const prepare = (from: string, where: string, condition: string, order = 'u.id'): Statement =>
      db.prepare(
        `SELECT ${UPLINK_COLUMNS} FROM ${from} JOIN device d ON d.id = u.device_id
         WHERE ${where} AND u.kind > 0 AND u.kind < @kindsBelow AND u.id BETWEEN @from AND @to AND ${HAS_NO_ROW}
         ${condition}
         ORDER BY ${order} DESC LIMIT @limit`,
      );
    // A unary "+" keeps SQLite from choosing an index by that column.
    const prepareAll = (condition: string) => ({
      ofMerchant: prepare('uplink u', 'u.merchant_id = @merchantId', condition),
      ofLock: prepare(
        'uplink_of_device o JOIN uplink u ON u.id = o.uplink_id',
        'o.device_id = @deviceId AND o.uplink_id BETWEEN @from AND @to AND +u.merchant_id = @merchantId',
        condition,
        'o.uplink_id',
      ),
      byId: prepare('uplink u', 'u.id = @from AND +u.merchant_id = @merchantId', condition),
    });
    this.#withoutRowOf = {
      any: prepareAll(''),
      succeeded: { ...prepareAll(`AND ${HAS_SUCCEEDED}`), ofMerchant: db.prepare(SUCCEEDED_EVENTS) },
      unsuccessful: prepareAll(`AND NOT ${HAS_SUCCEEDED}`),
    };
    this.#attempts = db.prepare(
      `SELECT number, at_ms AS atMs, duration_ms AS durationMs, status, error, answer FROM attempt
       WHERE url_id = ? AND uplink_id = ? ORDER BY id`,
    );
    this.#newestAttempts = db.prepare(NEWEST_ATTEMPTS);
  }

  /** Returns the newest deliveries of one URL that match the filter, with their attempts. */
  read(url: UrlOfDeliveries, gaps: readonly Gap[], filter: DeliveryFilter): DeliveryReading[] {
    const found = filter.states.flatMap((state) => [
      ...(state === 'kept' ? [] : this.#withRow(url, state, filter)),
      ...this.#withoutRow(url, gaps, state, filter),
    ]);
    const newest = found.sort((a, b) => b.uplink.id - a.uplink.id).slice(0, filter.limit);
    return newest.map((delivery) => ({ ...delivery, attempts: this.#readAttempts(url.id, delivery.uplink.id) }));
  }

  /** Returns the attempts at the URL's newest attempted events, at most `limit`, the newest events first. */
  readNewestAttempts(urlId: number, limit: number): AttemptSummary[] {
    return this.#newestAttempts.all(urlId, limit) as AttemptSummary[];
  }

  /** Returns the attempts at one event, oldest first. */
  #readAttempts(urlId: number, uplinkId: number): StoredAttempt[] {
    return this.#attempts.all(urlId, uplinkId) as StoredAttempt[];
  }

  /** Returns the deliveries in a state that have a row. */
  #withRow(
    url: UrlOfDeliveries,
    state: DeliveryState,
    { deviceId, fromId, toId, limit }: DeliveryFilter,
  ): DeliveryWithoutAttempts[] {
    const parameters = { urlId: url.id, state, deviceId: deviceId ?? null, from: fromId, to: toId, limit };
    const rows = this.#rows.all(parameters) as RowOfDelivery[];
    return rows.map((row) => {
      const { next_attempt_at_ms: nextAttemptAtMs, attempts_before: attemptsBefore } = row;
      return { urlId: url.id, uplink: toUplink(row), state, nextAttemptAtMs, attemptsBefore };
    });
  }

  /** Returns the events in a state that have no row. */
  #withoutRow(
    url: UrlOfDeliveries,
    gaps: readonly Gap[],
    state: DeliveryState,
    filter: DeliveryFilter,
  ): DeliveryWithoutAttempts[] {
    const found: StoredUplink[] = [];
    const cursor = idInSlot(url.cursor, DENSE_SLOT);
    const afterCursor: IdRange = { from: cursor + 1, to: filter.toId };
    const toCursor: IdRange = { from: idInSlot(url.startedAfter, DENSE_SLOT) + 1, to: cursor };
    if (state === 'delivered') {
      found.push(...this.#events('succeeded', url, afterCursor, filter));
      // What the cursor passed was sent, unless a filter left it out.
      const sent = url.wasFiltered ? 'succeeded' : 'any';
      for (const range of outside(toCursor, gaps)) found.push(...this.#events(sent, url, range, filter));
      for (const gap of gaps) found.push(...this.#events('succeeded', url, rangeOf(gap), filter));
    }
    if (state === (url.state === 'active' ? 'pending' : 'kept')) found.push(...this.#unsent(url, afterCursor, filter));
    if (state === 'kept') for (const gap of gaps) found.push(...this.#unsent(url, rangeOf(gap), filter));
    return found.map((uplink) => ({ urlId: url.id, uplink, state, nextAttemptAtMs: null, attemptsBefore: 0 }));
  }

  /** Reads events without a row that were not sent and pass the URL's filter. */
  #unsent(url: UrlOfDeliveries, range: IdRange, filter: DeliveryFilter): StoredUplink[] {
    if (url.filter === null) return this.#events('unsuccessful', url, range, filter);
    const found: StoredUplink[] = [];
    for (let to = range.to; to >= range.from && found.length < filter.limit; ) {
      const events = this.#events('unsuccessful', url, { from: range.from, to }, filter);
      found.push(...this.#passing.select(url.filter, events));
      if (events.length < filter.limit) break;
      to = (events.at(-1)?.id ?? range.from) - 1;
    }
    return found.slice(0, filter.limit);
  }

  /**
   * Reads events without a row in a range of the log. Of one lock, the newest events are read by the ids in the
   * memtable (the part of the index by lock that is not on disk yet), and older ones by the index.
   */
  #events(
    attempts: 'any' | 'succeeded' | 'unsuccessful',
    url: UrlOfDeliveries,
    range: IdRange,
    filter: DeliveryFilter,
  ): StoredUplink[] {
    const { deviceId, limit } = filter;
    const from = Math.max(range.from, filter.fromId);
    const to = Math.min(range.to, filter.toId);
    if (from > to) return [];
    // Without a filter, only pings are for the URL; but an earlier filter may have let other events be sent.
    const kindsBelow = url.filter === null && attempts !== 'succeeded' ? FIRST_EVENT_KIND : Number.MAX_SAFE_INTEGER;
    const parameters = { urlId: url.id, merchantId: url.merchantId, from, to, limit, kindsBelow };
    const { ofMerchant, ofLock, byId } = this.#withoutRowOf[attempts];
    if (deviceId === undefined) return (ofMerchant.all(parameters) as UplinkRow[]).map(toUplink);
    const { indexedId } = this.#memtable;
    const found: UplinkRow[] = [];
    for (const id of this.#memtable.idsOf(deviceId, from - 1).reverse()) {
      if (id <= to && found.length < limit)
        found.push(...(byId.all({ ...parameters, from: id, to: id }) as UplinkRow[]));
    }
    const older = { ...parameters, deviceId, to: Math.min(to, indexedId), limit: limit - found.length };
    return [...found, ...(ofLock.all(older) as UplinkRow[])].map(toUplink);
  }
}

/** The ids of a gap. */
function rangeOf({ afterId, untilId }: Gap): IdRange {
  return { from: afterId + 1, to: untilId };
}

/** Returns the parts of `range` outside of the gaps, newest first. The gaps must be ordered and must not overlap. */
function outside(range: IdRange, gaps: readonly Gap[]): IdRange[] {
  const ranges: IdRange[] = [];
  let { from } = range;
  for (const { afterId, untilId } of gaps) {
    ranges.push({ from, to: Math.min(afterId, range.to) });
    from = Math.max(from, untilId + 1);
  }
  ranges.push({ from, to: range.to });
  return ranges.filter((part) => part.from <= part.to).reverse();
}
