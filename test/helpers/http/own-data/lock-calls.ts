/**
 * Calls to the operations on locks. The test makes each call with the key of the merchant that it is about (`status`)
 * and with another merchant's key (`statusForOthers`: 404, or a list without the lock), and the calls of
 * `otherStatuses` to get the other documented statuses.
 */
import { formatMac } from '../../../../proto/wire/mac.js';
import { testMac } from '../../gateway/test-gateway.js';
import type { CallTable } from './call-table.js';

/** The MAC of no lock. */
const UNKNOWN = formatMac(testMac(99));

export const LOCK_CALLS: CallTable = {
  'GET /v1/locks': {
    callFor: () => ['/v1/locks?sort=trouble&presence=asleep,late'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/locks?sort=colour'] },
  },
  'GET /v1/locks/{mac}': {
    callFor: ({ mac }) => [`/v1/locks/${mac}`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: { 404: () => [`/v1/locks/${UNKNOWN}`] },
  },
  'PATCH /v1/locks/{mac}': {
    callFor: ({ mac }) => [`/v1/locks/${mac}`, { body: { name: 'Harbour 7', labels: { city: 'Hamburg' } } }],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      400: ({ mac }) => [`/v1/locks/${mac}`, { body: { labels: { 'a b': 'c' } } }],
      404: () => [`/v1/locks/${UNKNOWN}`, { body: {} }],
      413: ({ mac }) => [`/v1/locks/${mac}`, { body: { name: 'x'.repeat(9_000) } }],
      415: ({ mac }) => [`/v1/locks/${mac}`, { body: '{}', headers: { 'content-type': 'text/csv' } }],
    },
  },
  'GET /v1/locks/{mac}/pings': {
    callFor: ({ mac }) => [`/v1/locks/${mac}/pings?limit=2&ping_type=gps,cellular&from=2026-11-20T06:00:00Z`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      400: ({ mac }) => [`/v1/locks/${mac}/pings?from=yesterday`],
      404: () => [`/v1/locks/${UNKNOWN}/pings`],
    },
  },
  'GET /v1/locks/{mac}/history': {
    callFor: ({ mac }) => [`/v1/locks/${mac}/history?from=2026-11-20T06:00:00Z`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      400: ({ mac }) => [`/v1/locks/${mac}/history?to=tomorrow`],
      404: () => [`/v1/locks/${UNKNOWN}/history`],
    },
  },
  'GET /v1/locks/{mac}/track': {
    callFor: ({ mac }) => [`/v1/locks/${mac}/track`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      400: ({ mac }) => [`/v1/locks/${mac}/track?format=kml`],
      404: () => [`/v1/locks/${UNKNOWN}/track`],
    },
  },
  'GET /v1/why/{id}': {
    callFor: ({ mac }) => [`/v1/why/${mac}`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: { 400: () => ['/v1/why/7'], 404: () => ['/v1/why/finding:99999'] },
  },
  'GET /v1/findings': {
    callFor: () => ['/v1/findings?limit=1'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/findings?cursor=x'] },
  },
  'GET /v1/locks/{mac}/findings': {
    callFor: ({ mac }) => [`/v1/locks/${mac}/findings?limit=1`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      400: ({ mac }) => [`/v1/locks/${mac}/findings?cursor=x`],
      404: () => [`/v1/locks/${UNKNOWN}/findings`],
    },
  },
};
