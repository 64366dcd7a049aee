/** Calls to the operations on commands. */
import { formatMac } from '../../../../proto/wire/mac.js';
import { testMac } from '../../gateway/test-gateway.js';
import type { MerchantCall } from '../merchant-call.js';
import type { CallTable } from './call-table.js';

/** Of no lock. */
const UNKNOWN = formatMac(testMac(99));
/** The same key in each call, so that a repeated call has the same effect as one call. */
const ONCE = { 'idempotency-key': 'call 1' };

const send = (body: unknown, headers: MerchantCall['headers'] = {}): MerchantCall => ({
  method: 'POST',
  body,
  headers,
});

export const COMMAND_CALLS: CallTable = {
  'POST /v1/locks/{mac}/commands': {
    make: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'unlock' }, ONCE)],
    status: 202,
    ofOthers: 404,
    further: {
      400: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'siren', parameters: { seconds: 601 } })],
      404: () => [`/v1/locks/${UNKNOWN}/commands`, send({ type: 'unlock' })],
      409: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'set-power', parameters: { airplane: true } })],
      413: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'unlock', note: 'x'.repeat(5_000) })],
      415: ({ mac }) => [`/v1/locks/${mac}/commands`, send('type=unlock', { 'content-type': 'text/csv' })],
      422: ({ mac }) => [`/v1/locks/${mac}/commands`, send({ type: 'lock' }, ONCE)],
    },
  },
  'GET /v1/commands': {
    make: ({ mac }) => [`/v1/commands?mac_addr=${mac}&limit=1`],
    status: 200,
    ofOthers: 404,
    further: { 400: () => ['/v1/commands?state=lost'], 404: () => [`/v1/commands?mac_addr=${UNKNOWN}`] },
  },
  'GET /v1/commands/{id}': {
    make: ({ queuedCommand }) => [`/v1/commands/${queuedCommand}`],
    status: 200,
    ofOthers: 404,
    further: { 404: () => ['/v1/commands/4000000000'] },
  },
  'POST /v1/commands/{id}/cancel': {
    make: ({ queuedCommand }) => [`/v1/commands/${queuedCommand}/cancel`, { method: 'POST' }],
    status: 200,
    ofOthers: 404,
    further: {
      404: () => ['/v1/commands/x/cancel', { method: 'POST' }],
      409: ({ expiredCommand }) => [`/v1/commands/${expiredCommand}/cancel`, { method: 'POST' }],
    },
  },
};
