/**
 * One webhook URL: `GET /webhooks/:id` with how its attempts went, its backlog and its next attempt; `/hours` with what
 * became of the events of the last 24 hours. Only reads.
 */
import { Type } from 'typebox';
import { Days } from '../../../../proto/clock.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { noSuchWebhook } from '../../../store/contract/errors.js';
import type { Store } from '../../../store/contract/store.js';
import type { WebhookUrl } from '../../../store/contract/webhooks/webhook-url.js';
import { readDeliveryHours } from '../../../webhooks/delivery-hours.js';
import { DeliveryHourSchema, deliveryHourJson } from '../../merchant/own-data/webhook-json.js';
import { readId } from '../query.js';
import type { OperatorParts, Route } from '../routes.js';
import { Count, MaybeText, MaybeTime, OrNull, Time } from '../schemas.js';
import { BacklogAnswer, backlogJson } from '../status.js';
import { webhook, webhookJson } from './webhook-routes.js';

/** The attempts of the last day are summed up. */
const SUMMED_SPAN = Days(1);
/** Of more attempts than these, only the newest are summed up. */
const MAX_SUMMED_ATTEMPTS = 2_000;

const ShownWebhook = Type.Object({
  ...webhook,
  backlog: OrNull(BacklogAnswer),
  next_attempt_at: MaybeTime,
  last_day: Type.Object(
    {
      attempts: Count,
      success_rate: OrNull(Type.Number({ minimum: 0, maximum: 1 })),
      p95_ms: OrNull(Type.Number()),
      last_success_at: MaybeTime,
      last_error: OrNull(Type.Object({ at: Time, status: OrNull(Type.Integer()), error: MaybeText })),
    },
    { description: `The attempts of the last 24 hours; of more than ${MAX_SUMMED_ATTEMPTS}, the newest.` },
  ),
});

/** The routes of this file. */
export const WEBHOOK_SHOW_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/webhooks/:id',
    summary: 'Returns a webhook URL with its settings, backlog, success rate, last error and next attempt.',
    operation: 'webhook.show',
    success: 200,
    answer: ShownWebhook,
    handle: async (parts, { params }) => await showWebhook(parts, readId(params.id)),
  },
  {
    method: 'GET',
    path: '/webhooks/:id/hours',
    summary: 'What became of the events of each of the last 24 hours at a webhook URL, by the hour of receipt.',
    operation: 'webhook.show-hours',
    success: 200,
    answer: Type.Object({ hours: Type.Array(DeliveryHourSchema) }),
    handle: async ({ store, clock, merchants }, { params }) => {
      const url = await findUrl(store, readId(params.id));
      // Operators' long reads take turns with those of merchants: only together can all be kept from delaying pings.
      const { readTurns } = merchants.ownData;
      const hours = await readDeliveryHours(store, url, clock.now(), () => readTurns.next());
      return { hours: hours.map(deliveryHourJson) };
    },
  },
];

/** @throws LockgateError `no-such-webhook` */
async function findUrl(store: Store, urlId: number): Promise<WebhookUrl> {
  const url = await store.webhooks.find(urlId);
  if (url === null) throw noSuchWebhook(urlId);
  return url;
}

/** @throws LockgateError `no-such-webhook` */
async function showWebhook({ store, webhooks, figures, wallClock }: OperatorParts, urlId: number) {
  const url = await findUrl(store, urlId);
  const { store: storeFigures, oldestAgeMs } = await figures.read();
  const backlog = storeFigures?.backlogs.find((each) => each.urlId === urlId);
  const summed = { limit: MAX_SUMMED_ATTEMPTS, sinceMs: wallClock.now() - SUMMED_SPAN };
  const { lastError, ...sums } = await store.webhooks.sumUpNewestAttempts(urlId, summed);
  // By the delivery clock; `earliestAttemptAtMs` converts to wall-clock time. Events that the URL's cursor has not
  // reached are due at once.
  const dueAtMs = (backlog?.behind ?? 0) > 0 ? 0 : await store.nextDueAtMs(urlId);
  const nextAtMs = dueAtMs === null ? null : webhooks.earliestAttemptAtMs(urlId, dueAtMs);
  return {
    ...webhookJson(await webhooks.settings.read(url)),
    backlog: backlog === undefined ? null : backlogJson(backlog, oldestAgeMs(backlog)),
    next_attempt_at: nextAtMs === null ? null : formatDate(nextAtMs),
    last_day: {
      attempts: sums.attempts,
      success_rate: sums.successRate,
      p95_ms: sums.p95Ms,
      last_success_at: sums.lastSuccessAtMs === null ? null : formatDate(sums.lastSuccessAtMs),
      last_error: lastError && { at: formatDate(lastError.atMs), status: lastError.status, error: lastError.error },
    },
  };
}
