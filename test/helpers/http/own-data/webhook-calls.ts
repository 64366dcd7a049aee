/** Calls to the operations on webhook URLs and deliveries. */
import type { MerchantCall } from '../merchant-call.js';
import type { CallTable } from './call-table.js';
import type { Subject } from './site.js';

const POST: MerchantCall = { method: 'POST' };
/** A well-formed event id that no event has. */
const UNKNOWN_EVENT = 'evt_A4C138000063_1_1_1_0123456789abcdef';

/** The path and the call that requests undelivered events again, for the webhook URL with this id. */
const recover = (id: number, body: unknown, headers: MerchantCall['headers'] = {}) =>
  [`/v1/webhooks/${id}/recover`, { ...POST, body, headers }] as const;

/** The body that requests them. */
const SINCE = { since: '2026-11-20T00:00:00Z' };

/**
 * For each operation a call of the data's own merchant and its status, the status of the same call by another merchant,
 * and calls of the own merchant that get each other status: 400 a wrong query or body, 404 no such URL or event, 409 a
 * disabled URL, 413 a too long body, 415 a body that is no JSON.
 */
export const WEBHOOK_CALLS: CallTable = {
  'GET /v1/webhooks': {
    callFor: () => ['/v1/webhooks?limit=1'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/webhooks?limit=0'] },
  },
  'GET /v1/webhooks/{id}/deliveries': {
    callFor: ({ webhookId }) => [`/v1/webhooks/${webhookId}/deliveries?limit=2`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      400: ({ webhookId }) => [`/v1/webhooks/${webhookId}/deliveries?state=lost`],
      404: () => ['/v1/webhooks/x/deliveries'],
    },
  },
  'GET /v1/webhooks/{id}/hours': {
    callFor: ({ webhookId }) => [`/v1/webhooks/${webhookId}/hours`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: { 404: () => ['/v1/webhooks/x/hours'] },
  },
  'POST /v1/webhooks/{id}/deliveries/{event}/resend': {
    callFor: ({ webhookId, event }) => [`/v1/webhooks/${webhookId}/deliveries/${event}/resend`, POST],
    status: 202,
    statusForOthers: 404,
    otherStatuses: {
      404: ({ webhookId }) => [`/v1/webhooks/${webhookId}/deliveries/${UNKNOWN_EVENT}/resend`, POST],
      409: ({ disabledWebhookId, event }) => [`/v1/webhooks/${disabledWebhookId}/deliveries/${event}/resend`, POST],
    },
  },
  'POST /v1/webhooks/{id}/recover': {
    callFor: ({ webhookId }) => recover(webhookId, SINCE),
    status: 202,
    statusForOthers: 404,
    otherStatuses: {
      400: ({ webhookId }) => recover(webhookId, { since: 'yesterday' }),
      404: () => recover(4_000_000_000, SINCE),
      409: ({ disabledWebhookId }: Subject) => recover(disabledWebhookId, SINCE),
      413: ({ webhookId }) => recover(webhookId, { ...SINCE, note: 'x'.repeat(2_000) }),
      415: ({ webhookId }) => recover(webhookId, 'since=now', { 'content-type': 'text/csv' }),
    },
  },
};
