/**
 * Reads deliveries in pages, newest events first; of one event, in the order of the URLs. Only reads, in turns of a few
 * milliseconds, since a search for few matching deliveries in a long log would otherwise delay pings.
 *
 * A page is searched in slices: a slice is a range of uplink ids. The URLs of a slice are read in several turns of the
 * event loop if there are many.
 */
import { systemClock } from '../../proto/clock.js';
import type { Store } from '../store/contract/store.js';
import type { DeliveryReading, DeliveryState } from '../store/contract/webhook-store.js';

/** Maximum number of deliveries that one slice reads. */
const DELIVERIES_PER_SLICE = 25;
/** Number of URLs whose deliveries are read in one turn of the event loop. */
const URLS_PER_TURN = 20;
/** Number of uplink ids that the first slice searches, and the minimum for every slice. */
const FIRST_WINDOW_IDS = 4_096;
const MIN_WINDOW_IDS = 256;
/**
 * If the slowest turn of a slice took less than the first number of ms, the next slice searches twice as many ids; if
 * it took more than the second, half as many.
 */
const QUICK_TURN_MS = 1;
const SLOW_TURN_MS = 4;
/** Maximum number of slices of one page. A page with too few deliveries by then is returned; the next one continues. */
const MAX_SLICES = 200;
/** Higher than every URL's id: a position with this id comes after the deliveries of its event to all URLs. */
const NO_MORE_URLS = Number.MAX_SAFE_INTEGER;

/** A place in the list: after the delivery of this event to this URL. */
export interface DeliveryPosition {
  readonly uplinkId: number;
  readonly urlId: number;
}

/** The position after all deliveries of this uplink's event. Next in the list are those of the event before it. */
export function afterEvent(uplinkId: number): DeliveryPosition {
  return { uplinkId, urlId: NO_MORE_URLS };
}

export interface DeliveryPageTerms {
  /** Ascending. */
  readonly urlIds: readonly number[];
  readonly states: readonly DeliveryState[];
  readonly deviceId?: number | undefined;
  /** Only events from this uplink id on; undefined means all. */
  readonly fromId?: number | undefined;
  /** Where the page starts; undefined means at the newest event. */
  readonly after: DeliveryPosition | undefined;
  readonly limit: number;
  /** Waits for the turn to read; rejects if the caller has disconnected. */
  readonly nextTurn: () => Promise<void>;
}

export interface DeliveryPage {
  readonly deliveries: readonly DeliveryReading[];
  /** `after` of the next page; null if this is the last one. */
  readonly next: DeliveryPosition | null;
}

/** Reads one page. @throws StoreFailure */
export async function readDeliveryPage(store: Store, terms: DeliveryPageTerms): Promise<DeliveryPage> {
  const { limit, fromId = 1 } = terms;
  const deliveries: DeliveryReading[] = [];
  // No uplink was received that late, so the store returns the last id + 1, which is above every event in the log.
  let after = terms.after ?? afterEvent(await store.webhooks.findFirstUplinkFrom(Number.MAX_SAFE_INTEGER));
  let windowIds = FIRST_WINDOW_IDS;
  for (let slice = 0; slice < MAX_SLICES && !isEnd(after, fromId); slice += 1) {
    // One delivery more than the page has shows that there is a further page.
    const wanted = Math.min(limit + 1 - deliveries.length, DELIVERIES_PER_SLICE);
    const { found, end, slowestTurnMs } = await readSlice(store, terms, { after, windowIds, wanted });
    deliveries.push(...found);
    if (deliveries.length > limit) {
      const shown = deliveries.slice(0, limit);
      const last = shown.at(-1);
      return { deliveries: shown, next: last === undefined ? null : positionOf(last) };
    }
    after = end;
    if (slowestTurnMs < QUICK_TURN_MS) windowIds *= 2;
    else if (slowestTurnMs > SLOW_TURN_MS) windowIds = Math.max(windowIds / 2, MIN_WINDOW_IDS);
  }
  return { deliveries, next: isEnd(after, fromId) ? null : after };
}

interface Slice {
  readonly after: DeliveryPosition;
  /** How many uplink ids are searched. */
  readonly windowIds: number;
  /** Maximum number of deliveries that are returned. */
  readonly wanted: number;
}

/**
 * Reads at most `wanted` deliveries after a position. Returns them with the end of what was searched, and how long its
 * slowest turn took.
 */
async function readSlice(
  { webhooks }: Store,
  { urlIds, states, deviceId, fromId = 1, nextTurn }: DeliveryPageTerms,
  { after, windowIds, wanted }: Slice,
): Promise<{
  readonly found: readonly DeliveryReading[];
  readonly end: DeliveryPosition;
  readonly slowestTurnMs: number;
}> {
  const firstId = Math.max(after.uplinkId - windowIds, fromId);
  const found: DeliveryReading[] = [];
  let slowestTurnMs = 0;
  const read = async (ids: readonly number[], from: number, to: number): Promise<void> => {
    for (let index = 0; from <= to && index < ids.length; index += URLS_PER_TURN) {
      await nextTurn();
      const startedMs = systemClock.now();
      const some = ids.slice(index, index + URLS_PER_TURN);
      const filter = { urlIds: some, states, deviceId, fromId: from, toId: to, limit: wanted };
      found.push(...(await webhooks.readDeliveries(filter)));
      slowestTurnMs = Math.max(slowestTurnMs, systemClock.now() - startedMs);
    }
  };
  // The event of the position may have deliveries to further URLs; then come the earlier events.
  const otherUrls = urlIds.filter((id) => id > after.urlId);
  await read(otherUrls, after.uplinkId, after.uplinkId);
  await read(urlIds, firstId, after.uplinkId - 1);
  found.sort((one, other) => other.uplink.id - one.uplink.id || one.urlId - other.urlId);
  const newest = found.slice(0, wanted);
  const last = newest.length === wanted ? newest.at(-1) : undefined;
  return { found: newest, end: last === undefined ? afterEvent(firstId) : positionOf(last), slowestTurnMs };
}

/** Whether there can be nothing after this position. */
function isEnd({ uplinkId, urlId }: DeliveryPosition, fromId: number): boolean {
  return uplinkId < fromId || (uplinkId === fromId && urlId === NO_MORE_URLS);
}

function positionOf({ uplink, urlId }: DeliveryReading): DeliveryPosition {
  return { uplinkId: uplink.id, urlId };
}
