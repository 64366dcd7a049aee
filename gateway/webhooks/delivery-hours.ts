/**
 * What became of the events of each of the last hours at a webhook URL: delivered, given up, waiting. An event belongs
 * to the hour in which it was received. Only reads, in slices of the log that usually take some milliseconds, and
 * only a limited number of slices per hour: an hour with very many events is extrapolated from its start.
 */
import { Hours } from '../../proto/clock.js';
import type { LogPosition } from '../store/contract/log/log-position.js';
import type { Store } from '../store/contract/store.js';
import type { CountedRange } from '../store/contract/webhook-store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';

/** How many hours are shown, the present one included. */
export const SHOWN_HOURS = 24;
/** Number of pings, or of attempted events, that are counted at once. */
const EVENTS_PER_SLICE = 1_000;
/** Maximum number of slices that are counted for one hour. The rest of the hour is extrapolated. */
const MAX_SLICES_PER_HOUR = 20;
/**
 * Maximum number of unsent events of one hour that are read for a URL with a filter: there they can't be counted
 * without being read.
 */
const MAX_FILTERED_UNSENT = 200;

/** The events that were received in one hour, by the run's clock. */
export interface DeliveryHour {
  /** The start of the hour, ms since the epoch. */
  readonly fromMs: number;
  readonly delivered: number;
  /** Failed attempts to deliver the events of the hour. */
  readonly failedAttempts: number;
  /** Given up, or their stored ping is damaged. */
  readonly dead: number;
  /** Not delivered yet; of a disabled URL, also those that are stored until a recovery. */
  readonly waiting: number;
  /** Whether the hour had so many events that the counts are extrapolated. */
  readonly isEstimate: boolean;
}

/** How many events were read for an hour's counts. */
export function countedEvents({ delivered, dead, waiting }: DeliveryHour): number {
  return Math.min(delivered + dead + waiting, EVENTS_PER_SLICE * MAX_SLICES_PER_HOUR);
}

type Counts = Omit<DeliveryHour, 'fromMs'>;

const NOTHING: Counts = { delivered: 0, failedAttempts: 0, dead: 0, waiting: 0, isEstimate: false };

/**
 * Reads the hours, oldest first.
 *
 * @param nowMs by the run's clock
 * @param nextTurn waits for the turn to read; rejects if the caller has disconnected
 * @throws StoreFailure
 */
export async function readDeliveryHours(
  store: Store,
  url: WebhookUrl,
  nowMs: number,
  nextTurn: () => Promise<void>,
): Promise<DeliveryHour[]> {
  const hours: DeliveryHour[] = [];
  const newestMs = Math.floor(nowMs / Hours(1)) * Hours(1);
  let fromId = 0;
  for (let index = 0; index <= SHOWN_HOURS; index += 1) {
    await nextTurn();
    const startMs = newestMs - Hours(SHOWN_HOURS - 1 - index);
    // The ids of an hour end where those of the next one start.
    const startId = await store.webhooks.findFirstUplinkFrom(startMs);
    if (index > 0) {
      const counts = await countRange(store, url, { afterId: fromId - 1, toId: startId - 1 }, nextTurn);
      hours.push({ fromMs: startMs - Hours(1), ...counts });
    }
    fromId = startId;
  }
  return hours;
}

type IdRange = Omit<CountedRange, 'limit'>;

/**
 * The part of a range of ids that is between two positions. A position holds, for each part ("slot") of the log, the
 * last id before it; an empty position is the start of the log. The ids are narrowed too, since a count that is
 * extrapolated takes their distance for the number of events.
 */
function between(after: LogPosition, { afterId, toId }: IdRange, before?: LogPosition): IdRange {
  const lowestId = Math.min(...after.values());
  const highestId = before === undefined ? toId : Math.max(...before.values(), 0);
  const narrowed = { afterId: Math.max(afterId, after.size === 0 ? 0 : lowestId), toId: Math.min(toId, highestId) };
  return { ...narrowed, after, before };
}

/** Counts a range in two parts: up to the cursor, every event was attempted; after it, some were not sent yet. */
async function countRange(store: Store, url: WebhookUrl, range: IdRange, nextTurn: () => Promise<void>) {
  const { cursor, startedAfter } = url;
  const beforeCursor = between(startedAfter, range, cursor);
  const afterCursor = between(cursor, range);
  const attemptedBefore = await countAttempted(store, url.id, beforeCursor, nextTurn);
  const attemptedAfter = await countAttempted(store, url.id, afterCursor, nextTurn);
  const unsent = await countUnsent(store, url, afterCursor, attemptedAfter, nextTurn);
  return sum([attemptedBefore.counts, attemptedAfter.counts, unsent]);
}

/** The attempted events of a range: exact up to a limit, extrapolated beyond it. */
async function countAttempted(store: Store, urlId: number, range: IdRange, nextTurn: () => Promise<void>) {
  const { toId } = range;
  let [afterId, events] = [range.afterId, 0];
  let counts: Counts = NOTHING;
  for (let slice = 0; slice < MAX_SLICES_PER_HOUR && afterId < toId; slice += 1) {
    await nextTurn();
    const found = await store.webhooks.countAttempted(urlId, { ...range, afterId, limit: EVENTS_PER_SLICE });
    const { attempted, attempts, delivered, dead, pending } = found;
    const failedAttempts = Math.max(attempts - delivered, 0);
    counts = sum([counts, { delivered, failedAttempts, dead, waiting: pending, isEstimate: false }]);
    events += attempted;
    afterId = found.lastId;
  }
  const share = (afterId - range.afterId) / (toId - range.afterId);
  return afterId < toId ? { events: events / share, counts: scaled(counts, share) } : { events, counts };
}

/** The events of a range after the cursor that were not attempted yet. */
async function countUnsent(
  store: Store,
  url: WebhookUrl,
  range: IdRange,
  { events: attempted }: { readonly events: number },
  nextTurn: () => Promise<void>,
): Promise<Counts> {
  const { afterId: startId, toId } = range;
  if (startId >= toId) return NOTHING;
  if (url.filter !== null) return await countFilteredUnsent(store, url.id, range, nextTurn);
  let [afterId, pings] = [startId, 0];
  for (let slice = 0; slice < MAX_SLICES_PER_HOUR && afterId < toId; slice += 1) {
    await nextTurn();
    const found = await store.webhooks.countPings(url.id, { ...range, afterId, limit: EVENTS_PER_SLICE });
    pings += found.count;
    afterId = found.lastId;
  }
  const isEstimate = afterId < toId;
  const all = isEstimate ? pings / ((afterId - startId) / (toId - startId)) : pings;
  return { ...NOTHING, waiting: Math.max(Math.round(all - attempted), 0), isEstimate };
}

async function countFilteredUnsent(
  store: Store,
  urlId: number,
  { afterId, toId }: IdRange,
  nextTurn: () => Promise<void>,
): Promise<Counts> {
  await nextTurn();
  // `kept`: stored while the URL is disabled, until a recovery.
  const found = await store.webhooks.readDeliveries({
    urlIds: [urlId],
    states: ['pending', 'kept'],
    fromId: afterId + 1,
    toId,
    limit: MAX_FILTERED_UNSENT,
  });
  // Events with attempts were counted by countAttempted.
  const waiting = found.filter(({ attempts }) => attempts.length === 0).length;
  return { ...NOTHING, waiting, isEstimate: found.length === MAX_FILTERED_UNSENT };
}

function sum(parts: readonly Counts[]): Counts {
  return parts.reduce((total, each) => ({
    delivered: total.delivered + each.delivered,
    failedAttempts: total.failedAttempts + each.failedAttempts,
    dead: total.dead + each.dead,
    waiting: total.waiting + each.waiting,
    isEstimate: total.isEstimate || each.isEstimate,
  }));
}

/** @param share the counted part of the whole, 0 to 1 */
function scaled({ delivered, failedAttempts, dead, waiting }: Counts, share: number): Counts {
  const whole = (count: number): number => Math.round(count / share);
  return {
    delivered: whole(delivered),
    failedAttempts: whole(failedAttempts),
    dead: whole(dead),
    waiting: whole(waiting),
    isEstimate: true,
  };
}
