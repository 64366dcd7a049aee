/**
 * Reads a merchant's events (stored pings) from the log in pages, oldest first, as webhooks would bring them
 * (interfaces.md §2, `GET /v1/events`). Only reads.
 */
import { type Clock, Minutes } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type Store, type StoredUplink, SWEPT_METADATA } from '../store/contract/store.js';
import { webhookBody } from './payload/body.js';
import type { WebhookPayload } from './payload/schema.js';

/** Number of events of one read of the store. A read blocks the event loop; pings are received between two reads. */
const EVENTS_PER_READ = 100;
/** Maximum number of events that are examined for one page, since few may match a filter. */
const MAX_EXAMINED_PER_PAGE = 10_000;
/** Times of receipt in the log may be out of order by less than this. */
const MAX_DISORDER = Minutes(1);

/** A place in the log: the events after it are still to be read. */
export interface EventPlace {
  /** The id of the last uplink that was read; 0 at the start of the log. */
  readonly afterId: number;
  /** Every event that was received before this time, by the run's clock, has been read. */
  readonly completeToMs: number;
}

/** Which events to read; undefined means all. */
export interface EventFilter {
  readonly types: ReadonlySet<string> | undefined;
  readonly reasons: ReadonlySet<string> | undefined;
}

export interface EventPage {
  readonly events: readonly WebhookPayload[];
  /** Where the next page starts. */
  readonly next: EventPlace;
  /** Whether the page reaches the end of the log. */
  readonly isAtEnd: boolean;
}

/** The place before all events. */
export const OLDEST_PLACE: EventPlace = { afterId: 0, completeToMs: 0 };

/**
 * Reads one page. A damaged ping is left out, as webhooks leave it out.
 *
 * @throws LockgateError `events-gone` if events after the place may have been deleted for their age
 * @throws StoreFailure
 */
export async function readEventPage(
  { store, runClock }: { readonly store: Store; readonly runClock: Clock },
  merchantId: number,
  place: EventPlace,
  { filter, limit }: { readonly filter: EventFilter; readonly limit: number },
): Promise<EventPage> {
  if (place.afterId > 0) await refuseIfSwept(store, place);
  const events: WebhookPayload[] = [];
  let { afterId, completeToMs } = place;
  let examined = 0;
  while (events.length < limit && examined < MAX_EXAMINED_PER_PAGE) {
    const startedMs = runClock.now();
    const stored = await store.readEvents(merchantId, afterId, EVENTS_PER_READ);
    for (const uplink of stored) {
      if (events.length === limit) break;
      examined += 1;
      afterId = uplink.id;
      completeToMs = Math.max(completeToMs, uplink.receivedAtMs);
      const body = bodyOf(uplink);
      if (body !== undefined && matches(body, filter)) events.push(body);
    }
    const isWholeReadUsed = stored.length === 0 || afterId === stored.at(-1)?.id;
    if (isWholeReadUsed && stored.length < EVENTS_PER_READ) {
      completeToMs = Math.max(completeToMs, startedMs - MAX_DISORDER);
      return { events, next: { afterId, completeToMs }, isAtEnd: true };
    }
  }
  return { events, next: { afterId, completeToMs }, isAtEnd: false };
}

async function refuseIfSwept(store: Store, { completeToMs }: EventPlace): Promise<void> {
  const sweptBeforeMs = Number((await store.readMetadata(SWEPT_METADATA)) ?? 0);
  if (completeToMs < sweptBeforeMs)
    throw new LockgateError('events-gone', 'events after this cursor were deleted, since they were too old');
}

function bodyOf(uplink: StoredUplink): WebhookPayload | undefined {
  if (uplink.isDamaged) return undefined;
  try {
    return webhookBody(uplink);
  } catch {
    return undefined;
  }
}

function matches({ ping_type, reason }: WebhookPayload, { types, reasons }: EventFilter): boolean {
  return (types?.has(ping_type) ?? true) && (reasons?.has(reason) ?? true);
}
