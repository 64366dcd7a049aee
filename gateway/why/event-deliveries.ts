/** What became of an event at each webhook URL of the merchant that it was made for, looked up. */
import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import { noSuchWebhook } from '../store/contract/errors.js';
import type { Store, StoredUplink } from '../store/contract/store.js';
import { DELIVERY_STATES, type DeliveryReading, type WebhookUrl } from '../store/contract/webhook-store.js';
import { eventId } from '../webhooks/event-id.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import { type DeliveryCase, deliverySteps } from './delivery-why.js';

/** URLs of a merchant that are told of. */
const URLS_TOLD = 20;
/** Events of a lock that are pending before one, at the most, to find the first. */
const PENDING_LOOKED_AT = 100;

export interface DeliveriesParts {
  readonly store: Store;
  readonly webhooks: Webhooks;
}

/**
 * The steps of all its deliveries, or of the one to `urlId`.
 *
 * @throws LockgateError `no-such-webhook` where the merchant has no such URL
 */
export async function eventDeliverySteps(
  parts: DeliveriesParts,
  uplink: StoredUplink,
  urlId: number | undefined,
): Promise<WhyStep[]> {
  const { store } = parts;
  const urls = (await store.listWebhookUrls()).filter(({ merchantId }) => merchantId === uplink.merchantId);
  const told = urls.filter(({ id }) => urlId === undefined || id === urlId);
  if (urlId !== undefined && told.length === 0) throw noSuchWebhook(urlId);
  if (told.length === 0) {
    const sentence = 'The lock’s merchant had no webhook URL to send it to.';
    return [step('delivery', 'no-url', SECTIONS.events, sentence)];
  }
  const steps: WhyStep[] = [];
  for (const url of told.slice(0, URLS_TOLD)) steps.push(...deliverySteps(await caseOf(parts, uplink, url)));
  const left = told.length - URLS_TOLD;
  if (left > 0) steps.push(step('bound', 'urls', SECTIONS.operator, `${left} more URLs are left out here.`));
  return steps;
}

async function caseOf(
  { store, webhooks }: DeliveriesParts,
  uplink: StoredUplink,
  url: WebhookUrl,
): Promise<DeliveryCase> {
  const reading = dated(await readingOf(store, uplink, url.id), webhooks);
  const { probeAtMs, heldUntilMs } = await webhooks.settings.read(url);
  const isInGap = await store.why.findGap(url.id, uplink.id);
  const behind = await firstBefore(store, uplink, url);
  const first = behind?.first ? { ...behind.first, reading: dated(behind.first.reading, webhooks) } : null;
  return { url, reading, probeAtMs, heldUntilMs, isInGap, behind: behind && { first } };
}

/** With the date of its next attempt, by the wall's clock. */
function dated<Reading extends DeliveryReading | null>(reading: Reading, webhooks: Webhooks): Reading {
  if (reading === null || reading.nextAttemptAtMs === null) return reading;
  const dueAtMs = webhooks.waits.toDate(reading.nextAttemptAtMs);
  return { ...reading, nextAttemptAtMs: webhooks.nextAttemptAtMs(reading) ?? dueAtMs };
}

async function readingOf(store: Store, { id }: StoredUplink, urlId: number): Promise<DeliveryReading | null> {
  const filter = { urlIds: [urlId], states: DELIVERY_STATES, fromId: id, toId: id, limit: 1 };
  return (await store.webhooks.readDeliveries(filter))[0] ?? null;
}

/** The first of the earlier events of its lock that are pending at a URL that keeps each lock's order. */
async function firstBefore(store: Store, { id, deviceId }: StoredUplink, url: WebhookUrl) {
  if (!url.ordered) return null;
  const states = ['pending'] as const;
  const filter = { urlIds: [url.id], states, deviceId, fromId: 0, toId: id - 1, limit: PENDING_LOOKED_AT };
  const pending = await store.webhooks.readDeliveries(filter);
  const first = pending.at(-1);
  if (first === undefined) return null;
  // Of more than that the first is unknown, and is not named.
  return { first: pending.length < PENDING_LOOKED_AT ? { reading: first, eventId: eventId(first.uplink) } : null };
}
