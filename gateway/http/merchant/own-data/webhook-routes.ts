/**
 * The routes for a merchant's webhooks (interfaces.md §2): its URLs, their deliveries, resending and recovery. The URLs
 * themselves are changed by operators only.
 */
import { type Static, Type } from 'typebox';
import { DATE_EXPECTED, parseDate } from '../../../../proto/date.js';
import { DELIVERY_STATES, type DeliveryState } from '../../../store/contract/webhook-store.js';
import type { WebhookUrl } from '../../../store/contract/webhooks/webhook-url.js';
import { countedEvents, readDeliveryHours } from '../../../webhooks/delivery-hours.js';
import { afterEvent, readDeliveryPage } from '../../../webhooks/delivery-page.js';
import { Refusal } from '../refusal.js';
import { type Call, type HttpAnswer, type MerchantRoute, problemResponse, tooLarge, WRONG_TYPE } from '../route.js';
import { readSpan } from './history/ping-read.js';
import { longPageAnswer, PAGE_QUERY, pageAnswer, pageResponse, readPage } from './list.js';
import { findQueriedLock, ownDataRoute } from './own-data-route.js';
import {
  DELIVERY_EXAMPLE,
  DELIVERY_HOUR_EXAMPLE,
  DeliveryHourSchema,
  DeliverySchema,
  DeliveryStateWord,
  deliveryHourJson,
  deliveryJson,
  SUMMED_ATTEMPTS,
  WEBHOOK_EXAMPLE,
  WebhookSchema,
  webhookJson,
} from './webhook-json.js';

const MAX_BODY_BYTES = 1024;

const id = Type.String({ description: 'The id of the webhook URL.' });
const NO_SUCH_URL = problemResponse('The merchant has no such webhook URL.');

const Recovery = Type.Object({
  since: Type.String({ description: 'Only events received at or after this time.' }),
  until: Type.Optional(Type.String({ description: 'Only events received before this time.' })),
});

const Resent = Type.Object({
  event_id: Type.String(),
  webhook_id: Type.Integer(),
  became: Type.Unsafe<string>({
    type: 'string',
    enum: ['due', 'on-its-way'],
    description: '`on-its-way`: it was not sent yet, and will be.',
  }),
});

/** All routes for webhooks. */
export const WEBHOOK_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/webhooks',
    operationId: 'listWebhooks',
    tag: 'webhooks',
    keyScope: 'webhooks:read',
    summary: 'Lists your webhook URLs, with their states and how their newest attempts went.',
    query: Type.Object(PAGE_QUERY),
    responses: {
      200: pageResponse('The webhook URLs.', WebhookSchema, WEBHOOK_EXAMPLE),
      400: problemResponse('`limit` or `cursor` is not valid.'),
    },
    handle: listWebhooks,
  }),
  ownDataRoute({
    method: 'GET',
    path: '/v1/webhooks/{id}/deliveries',
    operationId: 'listDeliveries',
    tag: 'webhooks',
    keyScope: 'webhooks:read',
    summary: 'Lists the deliveries to a webhook URL with their attempts, newest events first.',
    description: 'A search that takes long answers with what it found so far, and a `next_cursor` to go on from.',
    params: Type.Object({ id }),
    query: Type.Object({
      state: Type.Optional(DeliveryStateWord),
      mac_addr: Type.Optional(Type.String({ description: 'Only events of this lock.' })),
      from: Type.Optional(Type.String({ description: 'Only events received at this time or later, RFC 3339.' })),
      ...PAGE_QUERY,
    }),
    responses: {
      200: pageResponse('The deliveries.', DeliverySchema, DELIVERY_EXAMPLE),
      400: problemResponse('A parameter is not valid.'),
      404: problemResponse('The merchant has no such webhook URL or no such lock.'),
    },
    handle: listDeliveries,
  }),
  ownDataRoute({
    method: 'GET',
    path: '/v1/webhooks/{id}/hours',
    operationId: 'listDeliveryHours',
    tag: 'webhooks',
    keyScope: 'webhooks:read',
    summary: 'What became of the events of each of the last 24 hours at a webhook URL, oldest hour first.',
    description: 'An event counts in the hour in which it was received.',
    params: Type.Object({ id }),
    responses: {
      200: {
        description: 'The hours.',
        schema: Type.Object({ data: Type.Array(DeliveryHourSchema) }),
        example: { data: [DELIVERY_HOUR_EXAMPLE] },
      },
      404: NO_SUCH_URL,
    },
    handle: async (call) => {
      const { parts, merchantId, signal } = call;
      const { readTurns, runClock } = parts.ownData;
      const nextTurn = (): Promise<void> => readTurns.next(signal);
      const hours = await readDeliveryHours(parts.store, await findOwnUrl(call), runClock.now(), nextTurn);
      for (const hour of hours) parts.budgets.chargeRows(merchantId, countedEvents(hour));
      return { status: 200, body: { data: hours.map(deliveryHourJson) } };
    },
  }),
  ownDataRoute({
    method: 'POST',
    path: '/v1/webhooks/{id}/deliveries/{event}/resend',
    operationId: 'resendDelivery',
    tag: 'webhooks',
    keyScope: 'webhooks:resend',
    summary: 'Sends an event to a webhook URL again, whether it was delivered or not.',
    params: Type.Object({ id, event: Type.String({ description: 'The `event_id`.' }) }),
    responses: {
      202: {
        description: 'The event will be sent, under its own id.',
        schema: Resent,
        example: { event_id: DELIVERY_EXAMPLE.event_id, webhook_id: 1, became: 'due' },
      },
      404: problemResponse('The merchant has no such webhook URL or no such event.'),
      409: problemResponse(
        'The webhook URL is disabled, its filter leaves the event out, or the stored ping is damaged.',
      ),
    },
    handle: async (call) => {
      const url = await findOwnUrl(call);
      const event_id = call.params.event ?? '';
      const became = await call.parts.ownData.webhooks.redelivery.resendOwn(event_id, url);
      return { status: 202, body: { event_id, webhook_id: url.id, became } };
    },
    audit: ({ params }) => ({ action: 'event.resend', object: params.event ?? '', after: { webhook_id: params.id } }),
  }),
  ownDataRoute({
    method: 'POST',
    path: '/v1/webhooks/{id}/recover',
    operationId: 'recoverDeliveries',
    tag: 'webhooks',
    keyScope: 'webhooks:resend',
    summary: 'Sends all undelivered events of a time to a webhook URL again.',
    description: 'Those that failed, wait for a retry, or were stored while the URL was disabled.',
    params: Type.Object({ id }),
    body: Recovery,
    bodyBytes: MAX_BODY_BYTES,
    bodyExample: { since: '2026-11-20T06:00:00.000Z' },
    responses: {
      202: {
        description: 'The events will be sent, under their own ids.',
        schema: Type.Object({ webhook_id: Type.Integer(), events: Type.Integer({ minimum: 0 }) }),
        example: { webhook_id: 1, events: 212 },
      },
      400: problemResponse('The body is not JSON, or `since` or `until` is not valid.'),
      404: NO_SUCH_URL,
      409: problemResponse('The webhook URL is disabled, or a recovery of it is under way.'),
      413: tooLarge(MAX_BODY_BYTES),
      415: WRONG_TYPE,
    },
    handle: recover,
    audit: ({ params, body }, answer) => {
      const { since, until } = body as Static<typeof Recovery>;
      const { events } = answer.body as { readonly events: number };
      return { action: 'delivery.recover', object: params.id ?? '', after: { since, until, events } };
    },
  }),
];

/** By id: a new URL comes last. */
async function listWebhooks(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, signal } = call;
  const { webhooks, readTurns } = parts.ownData;
  const listKey = `webhooks ${merchantId}`;
  const { limit, after } = readPage(call, listKey, ['number']);
  const afterId = Number(after?.[0] ?? 0);
  const urls = (await parts.store.listWebhookUrls()).filter((url) => url.merchantId === merchantId && url.id > afterId);
  const data: unknown[] = [];
  for (const url of urls.slice(0, limit)) {
    await readTurns.next(signal);
    const figures = await parts.store.webhooks.sumUpNewestAttempts(url.id, { limit: SUMMED_ATTEMPTS, sinceMs: 0 });
    data.push(webhookJson(await webhooks.settings.read(url), figures));
  }
  const last = urls[limit - 1];
  return pageAnswer(call, listKey, { data, next: urls.length > limit && last !== undefined ? [last.id] : null });
}

async function listDeliveries(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, query, signal } = call;
  const { webhooks, readTurns } = parts.ownData;
  const { id: urlId } = await findOwnUrl(call);
  const { state, from } = query as { state?: DeliveryState; from?: string };
  const device = (await findQueriedLock(call))?.device;
  const { fromMs } = readSpan(call);
  const listKey = JSON.stringify(['deliveries', urlId, state ?? null, device?.id ?? null, from ?? null]);
  const { limit, after } = readPage(call, listKey, ['number']);
  const beforeId = after?.[0] as number | undefined;
  const { deliveries, next } = await readDeliveryPage(parts.store, {
    urlIds: [urlId],
    states: state === undefined ? DELIVERY_STATES : [state],
    deviceId: device?.id,
    fromId: from === undefined ? undefined : await parts.store.webhooks.findFirstUplinkFrom(fromMs),
    after: beforeId === undefined ? undefined : afterEvent(beforeId),
    limit,
    nextTurn: () => readTurns.next(signal),
  });
  parts.budgets.chargeRows(merchantId, deliveries.length);
  return await longPageAnswer(call, listKey, {
    items: deliveries,
    toJson: (each) => deliveryJson(each, webhooks.nextAttemptWallClockMs(each)),
    next: next === null ? null : [next.uplinkId],
  });
}

async function recover(call: Call): Promise<HttpAnswer> {
  const url = await findOwnUrl(call);
  const { since, until } = call.body as Static<typeof Recovery>;
  const sinceMs = readTime('since', since);
  const untilMs = until === undefined ? undefined : readTime('until', until);
  if (untilMs !== undefined && untilMs <= sinceMs) throw wrongTime('until', 'expected a time after since');
  const events = await call.parts.ownData.webhooks.redelivery.recoverOwn(url, { sinceMs, untilMs });
  return { status: 202, body: { webhook_id: url.id, events } };
}

/** @throws Refusal 400 */
function readTime(name: string, text: string): number {
  const timeMs = parseDate(text);
  if (Number.isNaN(timeMs)) throw wrongTime(name, `expected ${DATE_EXPECTED}`);
  return timeMs;
}

function wrongTime(name: string, detail: string): Refusal {
  return new Refusal({
    status: 400,
    code: 'input-date',
    detail: `the request does not fit: /${name}: ${detail}`,
    faults: [{ pointer: `/${name}`, detail }],
  });
}

/**
 * The caller's webhook URL that the path names. Another merchant's URL, an unknown one and a malformed id get the same
 * answer.
 *
 * @throws Refusal 404 `no-such-webhook`
 */
async function findOwnUrl({ parts, merchantId, params }: Call): Promise<WebhookUrl> {
  const text = params.id ?? '';
  const url = /^[1-9]\d{0,14}$/.test(text) ? await parts.store.webhooks.find(Number(text)) : null;
  if (url?.merchantId === merchantId) return url;
  throw new Refusal({ status: 404, code: 'no-such-webhook', detail: 'there is no such webhook URL' });
}
