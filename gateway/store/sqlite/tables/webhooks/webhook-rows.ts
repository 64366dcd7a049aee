/**
 * Reads deliveries for operators, in hand-written SQL.
 *
 * A delivery that succeeded at its first attempt has no row. An event without a row has a state by its position in the
 * log: after the URL's cursor it is pending (or, at a disabled URL, kept), in a gap it is kept, prepareAll unless an
 * attempt succeeded; anywhere else it is delivered. There are few such ranges, and each is read backwards by an index,
 * so that reading the newest deliveries costs the same in a small log and a large one.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { StoredUplink, WebhookUrl } from '../../../contract/store.js';
import type { DeliveryFilter, DeliveryReading, DeliveryState, StoredAttempt } from '../../../contract/webhook-store.js';
import type { UplinkMemtable } from '../../log/memtable/uplink-memtable.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../log/uplink-row.js';

/** A range of uplink ids, prepareAll ends included. */
interface IdRange {
  readonly from: number;
  readonly to: number;
}

/** Events that a URL's cursor passed unsent, after `afterId` up to `untilId`. */
export interface Gap {
  readonly afterId: number;
  readonly untilId: number;
}

interface RowOfDelivery extends UplinkRow {
  next_attempt_at_ms: number | null;
  attempts_before: number;
}

type Found = Omit<DeliveryReading, 'attempts'>;

const OF_LOCK = '(@deviceId IS NULL OR u.device_id = @deviceId)';
const NO_ROW = 'NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = @urlId AND y.uplink_id = u.id)';
const SUCCEEDED = 'EXISTS (SELECT 1 FROM attempt a WHERE a.url_id = @urlId AND a.uplink_id = u.id AND a.error IS NULL)';

export class DeliveryReader {
  readonly #rows: Statement;
  readonly #withoutRowOf: Readonly<
    Record<
      'any' | 'succeeded' | 'unsuccessful',
      { readonly all: Statement; readonly ofLock: Statement; readonly one: Statement }
    >
  >;
  readonly #attempts: Statement;

  readonly #memtable: UplinkMemtable;

  constructor(db: Database, memtable: UplinkMemtable) {
    this.#memtable = memtable;
    this.#rows = db.prepare(
      `SELECT ${UPLINK_COLUMNS}, y.next_attempt_at_ms, y.attempts_before FROM delivery y INDEXED BY delivery_by_state
       JOIN uplink u ON u.id = y.uplink_id JOIN device d ON d.id = u.device_id
       WHERE y.url_id = @urlId AND y.state = @state AND y.uplink_id BETWEEN @from AND @to AND ${OF_LOCK}
       ORDER BY y.uplink_id DESC LIMIT @limit`,
    );
    const prepare = (from: string, of: string, more: string): Statement =>
      db.prepare(
        `SELECT ${UPLINK_COLUMNS} FROM ${from} JOIN device d ON d.id = u.device_id
         WHERE ${of} AND u.kind > 0 AND u.id BETWEEN @from AND @to AND ${NO_ROW} ${more}
         ORDER BY u.id DESC LIMIT @limit`,
      );
    const prepareAll = (more: string) => ({
      all: prepare('uplink u', 'u.merchant_id = @merchantId', more),
      ofLock: prepare(
        'uplink_of_device o JOIN uplink u ON u.id = o.uplink_id',
        'o.device_id = @deviceId AND o.uplink_id BETWEEN @from AND @to AND +u.merchant_id = @merchantId',
        more,
      ),
      one: prepare('uplink u', 'u.id = @from AND +u.merchant_id = @merchantId', more),
    });
    this.#withoutRowOf = {
      any: prepareAll(''),
      succeeded: prepareAll(`AND ${SUCCEEDED}`),
      unsuccessful: prepareAll(`AND NOT ${SUCCEEDED}`),
    };
    this.#attempts = db.prepare(
      `SELECT number, at_ms AS atMs, duration_ms AS durationMs, status, error, answer FROM attempt
       WHERE url_id = ? AND uplink_id = ? ORDER BY id`,
    );
  }

  /** Returns the newest deliveries of one URL that match the filter, with their attempts. */
  read(url: WebhookUrl, gaps: readonly Gap[], filter: DeliveryFilter): DeliveryReading[] {
    const found = filter.states.flatMap((state) => [
      ...(state === 'kept' ? [] : this.#withRow(url, state, filter)),
      ...this.#withoutRow(url, gaps, state, filter),
    ]);
    const newest = found.sort((a, b) => b.uplink.id - a.uplink.id).slice(0, filter.limit);
    return newest.map((each) => ({ ...each, attempts: this.#readAttempts(url.id, each.uplink.id) }));
  }

  /** Returns the attempts at one event, oldest first. */
  #readAttempts(urlId: number, uplinkId: number): StoredAttempt[] {
    return this.#attempts.all(urlId, uplinkId) as StoredAttempt[];
  }

  #withRow(url: WebhookUrl, state: DeliveryState, { deviceId, fromId, toId, limit }: DeliveryFilter): Found[] {
    const named = { urlId: url.id, state, deviceId: deviceId ?? null, from: fromId, to: toId, limit };
    const rows = this.#rows.all(named) as RowOfDelivery[];
    return rows.map((row) => {
      const { next_attempt_at_ms: nextAttemptAtMs, attempts_before: attemptsBefore } = row;
      return { urlId: url.id, uplink: toUplink(row), state, nextAttemptAtMs, attemptsBefore };
    });
  }

  #withoutRow(url: WebhookUrl, gaps: readonly Gap[], state: DeliveryState, filter: DeliveryFilter): Found[] {
    const found: StoredUplink[] = [];
    const after: IdRange = { from: url.cursor + 1, to: filter.toId };
    const before = { from: url.startedAfter + 1, to: url.cursor };
    if (state === 'delivered') {
      found.push(...this.#events('succeeded', url, after, filter));
      for (const range of outside(before, gaps)) found.push(...this.#events('any', url, range, filter));
      for (const gap of gaps) found.push(...this.#events('succeeded', url, rangeOf(gap), filter));
    }
    if (state === (url.state === 'active' ? 'pending' : 'kept'))
      found.push(...this.#events('unsuccessful', url, after, filter));
    if (state === 'kept')
      for (const gap of gaps) found.push(...this.#events('unsuccessful', url, rangeOf(gap), filter));
    return found.map((uplink) => ({ urlId: url.id, uplink, state, nextAttemptAtMs: null, attemptsBefore: 0 }));
  }

  #events(
    which: 'any' | 'succeeded' | 'unsuccessful',
    url: WebhookUrl,
    range: IdRange,
    filter: DeliveryFilter,
  ): StoredUplink[] {
    const { deviceId, limit } = filter;
    const from = Math.max(range.from, filter.fromId);
    const to = Math.min(range.to, filter.toId);
    if (from > to) return [];
    const named = { urlId: url.id, merchantId: url.merchantId, from, to, limit };
    const { all, ofLock, one } = this.#withoutRowOf[which];
    if (deviceId === undefined) return (all.all(named) as UplinkRow[]).map(toUplink);
    const { indexedId } = this.#memtable;
    const found: UplinkRow[] = [];
    for (const id of this.#memtable.idsOf(deviceId, from - 1).reverse()) {
      if (id <= to && found.length < limit) found.push(...(one.all({ ...named, from: id, to: id }) as UplinkRow[]));
    }
    const rest = { ...named, deviceId, to: Math.min(to, indexedId), limit: limit - found.length };
    return [...found, ...(ofLock.all(rest) as UplinkRow[])].map(toUplink);
  }
}

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
  return ranges.filter((each) => each.from <= each.to).reverse();
}
