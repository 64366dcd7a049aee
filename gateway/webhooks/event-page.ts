/**
 * Reads a merchant's events (stored pings) from the log in pages, oldest first, as webhooks would bring them
 * (interfaces.md §2, `GET /v1/events`). Only reads.
 */
import { type Clock, Minutes } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { SWEPT_METADATA } from '../store/contract/deletion.js';
import { LOG_START, type LogPosition } from '../store/contract/log/log-position.js';
import type { PingFilter } from '../store/contract/merchants/uplink-scan.js';
import type { Store } from '../store/contract/store.js';
import { eventBodies } from './event-bodies.js';
import type { WebhookPayload } from './payload/schema.js';

/** Maximum number of events that are examined for one page, since few may match a filter. */
const MAX_EXAMINED_PER_PAGE = 10_000;
/** Times of receipt in the log may be out of order by less than this. */
const MAX_DISORDER = Minutes(1);

/** A place in the log: the events after it are still to be read. */
export interface EventPlace {
  /** Where the reading of the log ended. */
  readonly after: LogPosition;
  /**
   * Every event that was received before this time, by the run's clock (wall-clock time, except in a sped-up
   * simulation), has been read: if only older ones are deleted for their age, none is missed.
   */
  readonly completeToMs: number;
}

/** What pages are read with. */
export interface EventPageParts {
  readonly store: Store;
  readonly runClock: Clock;
  readonly budgets: { chargeRows(merchantId: number, rows: number): void };
}

export interface EventPage {
  readonly events: readonly WebhookPayload[];
  /** Where the next page starts. */
  readonly next: EventPlace;
  /** Whether the page reaches the end of the log. */
  readonly isAtEnd: boolean;
}

/** The place before all events. */
export const OLDEST_PLACE: EventPlace = { after: LOG_START, completeToMs: 0 };

/** What a page is read for. */
export interface EventPageTerms {
  readonly filter: Pick<PingFilter, 'types' | 'reasons'>;
  readonly limit: number;
  /** Between two slices of a page, other work runs. */
  readonly turns: Parameters<typeof eventBodies>[1];
  /** Aborts when the caller has hung up. */
  readonly signal: AbortSignal;
}

/**
 * Reads one page. A damaged ping is left out, as webhooks leave it out.
 *
 * @throws LockgateError `events-gone` if events after the place may have been deleted for their age
 * @throws StoreFailure
 */
export async function readEventPage(
  { store, runClock, budgets }: EventPageParts,
  merchantId: number,
  place: EventPlace,
  { filter, limit, turns, signal }: EventPageTerms,
): Promise<EventPage> {
  // An empty position is the start of the log: a reader who begins there misses nothing.
  if (place.after.size > 0) await refuseIfSwept(store, place);
  const startedMs = runClock.now();
  const terms = { merchantId, after: place.after, filter, limit, maxExamined: MAX_EXAMINED_PER_PAGE, signal };
  const { pings, examined, end, receivedToMs, isAtEnd } = await store.scans.events(terms);
  budgets.chargeRows(merchantId, examined);
  const events = await eventBodies(pings, turns, signal);
  const readToMs = isAtEnd ? startedMs - MAX_DISORDER : 0;
  const completeToMs = Math.max(place.completeToMs, receivedToMs, readToMs);
  return { events, next: { after: end, completeToMs }, isAtEnd };
}

async function refuseIfSwept(store: Store, { completeToMs }: EventPlace): Promise<void> {
  const sweptBeforeMs = Number((await store.readMetadata(SWEPT_METADATA)) ?? 0);
  if (completeToMs < sweptBeforeMs)
    throw new LockgateError('events-gone', 'events after this cursor were deleted, since they were too old');
}
