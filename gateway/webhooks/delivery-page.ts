/**
 * Reads the deliveries to one URL in pages, newest events first. Only reads, in slices of a few milliseconds, since a
 * search for few matching deliveries in a long log would otherwise hold up pings.
 */
import { systemClock } from '../../proto/clock.js';
import type { Store } from '../store/contract/store.js';
import type { DeliveryReading, DeliveryState } from '../store/contract/webhook-store.js';

/** Deliveries of one slice. */
const DELIVERIES_PER_SLICE = 100;
/** The log's uplinks that the first slice may search, and that any slice may always search. */
const FIRST_WINDOW = 4_096;
const MIN_WINDOW = 256;
/** After a slice that took less than this many ms, the next one may search twice as much; after a slow one, half. */
const QUICK_SLICE_MS = 1;
const SLOW_SLICE_MS = 4;
/** Slices of one page: a page that finds too little ends early, with a place to go on from. */
const MAX_SLICES = 200;

export interface DeliveryPageTerms {
  readonly urlId: number;
  readonly states: readonly DeliveryState[];
  /** Only events before this uplink id; undefined means from the newest one on. */
  readonly beforeId: number | undefined;
  readonly limit: number;
  /** Waits for the turn to read a slice; rejects if nobody waits for the page any more. */
  readonly nextTurn: () => Promise<void>;
}

export interface DeliveryPage {
  readonly deliveries: readonly DeliveryReading[];
  /** `beforeId` of the next page; null if this is the last one. */
  readonly nextBeforeId: number | null;
}

/** Reads one page. @throws StoreFailure */
export async function readDeliveryPage({ webhooks }: Store, terms: DeliveryPageTerms): Promise<DeliveryPage> {
  const { urlId, states, limit, nextTurn } = terms;
  const deliveries: DeliveryReading[] = [];
  let beforeId = terms.beforeId ?? (await webhooks.findFirstUplinkFrom(Number.MAX_SAFE_INTEGER));
  let window = FIRST_WINDOW;
  for (let slice = 0; slice < MAX_SLICES && beforeId > 1; slice += 1) {
    await nextTurn();
    const startedMs = systemClock.now();
    const fromId = Math.max(beforeId - window, 1);
    const wanted = Math.min(limit + 1 - deliveries.length, DELIVERIES_PER_SLICE);
    const found = await webhooks.readDeliveries({ urlIds: [urlId], states, fromId, toId: beforeId - 1, limit: wanted });
    deliveries.push(...found);
    if (deliveries.length > limit) {
      const shown = deliveries.slice(0, limit);
      return { deliveries: shown, nextBeforeId: shown.at(-1)?.uplink.id ?? null };
    }
    beforeId = found.length === wanted ? (found.at(-1)?.uplink.id ?? fromId) : fromId;
    const tookMs = systemClock.now() - startedMs;
    if (tookMs < QUICK_SLICE_MS) window *= 2;
    else if (tookMs > SLOW_SLICE_MS) window = Math.max(window / 2, MIN_WINDOW);
  }
  return { deliveries, nextBeforeId: beforeId > 1 ? beforeId : null };
}
