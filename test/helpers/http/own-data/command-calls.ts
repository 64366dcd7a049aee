/**
 * Calls to the operations on commands. The test makes each call with the key of the merchant that it is about
 * (`status`) and with another merchant's key (`statusForOthers`), and the calls of `otherStatuses` to get the other
 * documented statuses.
 */
import { formatMac } from '../../../../proto/wire/mac.js';
import { testMac } from '../../gateway/test-gateway.js';
import type { MerchantCall } from '../merchant-call.js';
import type { CallTable } from './call-table.js';

/** The MAC of no lock. */
const UNKNOWN = formatMac(testMac(99));
/** The same key in each call, so that a repeated call has the same effect as one call. */
const IDEMPOTENCY_KEY = { 'idempotency-key': 'call 1' };

/** A POST with this body. */
const send = (body: unknown, headers: MerchantCall['headers'] = {}): MerchantCall => ({
  method: 'POST',
  body,
  headers,
});

export const COMMAND_CALLS: CallTable = {
  'POST /v1/locks/{mac}/commands': {
    callFor: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'unlock' }, IDEMPOTENCY_KEY)],
    status: 202,
    statusForOthers: 404,
    otherStatuses: {
      // A siren may sound for at most 600 s.
      400: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'siren', parameters: { seconds: 601 } })],
      404: () => [`/v1/locks/${UNKNOWN}/commands`, send({ type: 'unlock' })],
      // Airplane mode must be confirmed.
      409: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'set-power', parameters: { airplane: true } })],
      413: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'unlock', note: 'x'.repeat(5_000) })],
      415: ({ mac }) => [`/v1/locks/${mac}/commands`, send('type=unlock', { 'content-type': 'text/csv' })],
      // Another command under a key that was used before.
      422: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'lock' }, IDEMPOTENCY_KEY)],
    },
  },
  'GET /v1/commands': {
    callFor: ({ mac }) => [`/v1/commands?mac_addr=${mac}&limit=1`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: { 400: () => ['/v1/commands?state=lost'], 404: () => [`/v1/commands?mac_addr=${UNKNOWN}`] },
  },
  'GET /v1/commands/{id}': {
    callFor: ({ queuedCommand }) => [`/v1/commands/${queuedCommand}`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: { 404: () => ['/v1/commands/4000000000'] },
  },
  'POST /v1/commands/{id}/cancel': {
    callFor: ({ queuedCommand }) => [`/v1/commands/${queuedCommand}/cancel`, { method: 'POST' }],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      404: () => ['/v1/commands/x/cancel', { method: 'POST' }],
      409: ({ expiredCommand }) => [`/v1/commands/${expiredCommand}/cancel`, { method: 'POST' }],
    },
  },
};
