/**
 * Reads from the store what happened to an event at each webhook URL of its merchant, as steps of a "why" answer.
 * delivery-why.ts has the sentences. Only reads.
 */
import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import { noSuchWebhook } from '../store/contract/errors.js';
import { isBehind } from '../store/contract/log/log-position.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import type { Store } from '../store/contract/store.js';
import { DELIVERY_STATES, type DeliveryReading } from '../store/contract/webhook-store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import { eventId } from '../webhooks/event-id.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { type DeliveryCase, deliverySteps } from './delivery-why.js';

/** Maximum number of URLs of a merchant that are explained. Further URLs are only counted. */
const MAX_SHOWN_URLS = 20;
/** Maximum number of earlier pending events of a lock that are read to find the first. */
const MAX_READ_PENDING = 100;

export interface DeliveriesParts {
  readonly store: Store;
  readonly webhooks: Webhooks;
}

/**
 * The steps of all deliveries of an event, or of the one to `urlId`.
 *
 * @throws LockgateError `no-such-webhook` if the merchant has no such URL
 */
export async function eventDeliverySteps(
  parts: DeliveriesParts,
  uplink: StoredUplink,
  urlId: number | undefined,
): Promise<WhyStep[]> {
  const { store } = parts;
  const urls = (await store.listWebhookUrls()).filter(({ merchantId }) => merchantId === uplink.merchantId);
  const wantedUrls = urls.filter(({ id }) => urlId === undefined || id === urlId);
  if (urlId !== undefined && wantedUrls.length === 0) throw noSuchWebhook(urlId);
  if (wantedUrls.length === 0) {
    const sentence = 'The lock’s merchant had no webhook URL to send it to.';
    return [step('delivery', 'no-url', SECTIONS.events, sentence)];
  }
  const steps: WhyStep[] = [];
  for (const url of wantedUrls.slice(0, MAX_SHOWN_URLS)) steps.push(...deliverySteps(await caseOf(parts, uplink, url)));
  const omittedCount = wantedUrls.length - MAX_SHOWN_URLS;
  if (omittedCount > 0)
    steps.push(step('bound', 'urls', SECTIONS.operator, `${omittedCount} more URLs are left out here.`));
  return steps;
}

/** Reads everything that determines the outcome of an event at a URL. */
async function caseOf(
  { store, webhooks }: DeliveriesParts,
  uplink: StoredUplink,
  url: WebhookUrl,
): Promise<DeliveryCase> {
  const reading = withWallClockDate(await readingOf(store, uplink, url.id), webhooks);
  const { probeAtMs, heldUntilMs } = await webhooks.settings.read(url);
  // Whether the event came while the URL was disabled, so that it was passed over unsent.
  const isInGap = await store.why.isInGap(url.id, uplink.id);
  const behind = await findEarlierPending(store, uplink, url);
  const earliest = behind?.first ?? null;
  const first = earliest && { ...earliest, reading: withWallClockDate(earliest.reading, webhooks) };
  // Events from before the URL's start are not its own, whatever its filter.
  const isLeftOut = url.wasFiltered && !isBehind(url.startedAfter, uplink.id);
  return { url, reading, probeAtMs, heldUntilMs, isInGap, isLeftOut, behind: behind && { first } };
}

/** Converts the time of the next attempt from the dispatcher's clock to wall-clock time. */
function withWallClockDate<Reading extends DeliveryReading | null>(reading: Reading, webhooks: Webhooks): Reading {
  if (reading === null || reading.nextAttemptAtMs === null) return reading;
  // The dispatcher knows when the URL may get an attempt at all; null at a disabled URL.
  const possibleAtMs = webhooks.nextAttemptWallClockMs(reading);
  return { ...reading, nextAttemptAtMs: possibleAtMs ?? webhooks.deliveryClock.formatDate(reading.nextAttemptAtMs) };
}

async function readingOf(store: Store, { id }: StoredUplink, urlId: number): Promise<DeliveryReading | null> {
  const filter = { urlIds: [urlId], states: DELIVERY_STATES, fromId: id, toId: id, limit: 1 };
  return (await store.webhooks.readDeliveries(filter))[0] ?? null;
}

/** At an ordered URL, the first of the lock's earlier events that are pending; null if none is. */
async function findEarlierPending(store: Store, { id, deviceId }: StoredUplink, url: WebhookUrl) {
  if (!url.ordered) return null;
  const states = ['pending'] as const;
  const filter = { urlIds: [url.id], states, deviceId, fromId: 0, toId: id - 1, limit: MAX_READ_PENDING };
  const pending = await store.webhooks.readDeliveries(filter);
  // The newest comes first.
  const first = pending.at(-1);
  if (first === undefined) return null;
  // If the limit was reached, an even earlier event may not have been read, so the first is not known.
  return { first: pending.length < MAX_READ_PENDING ? { reading: first, eventId: eventId(first.uplink) } : null };
}
