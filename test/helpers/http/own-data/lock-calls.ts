/** Calls to the operations on locks. */
import { formatMac } from '../../../../proto/wire/mac.js';
import { testMac } from '../../gateway/test-gateway.js';
import type { CallTable } from './call-table.js';

/** Of no lock. */
const UNKNOWN = formatMac(testMac(99));

export const LOCK_CALLS: CallTable = {
  'GET /v1/locks': {
    make: () => ['/v1/locks?sort=trouble&presence=asleep,late'],
    status: 200,
    ofOthers: 200,
    further: { 400: () => ['/v1/locks?sort=colour'] },
  },
  'GET /v1/locks/{mac}': {
    make: ({ mac }) => [`/v1/locks/${mac}`],
    status: 200,
    ofOthers: 404,
    further: { 404: () => [`/v1/locks/${UNKNOWN}`] },
  },
  'PATCH /v1/locks/{mac}': {
    make: ({ mac }) => [`/v1/locks/${mac}`, { body: { name: 'Harbour 7', labels: { city: 'Hamburg' } } }],
    status: 200,
    ofOthers: 404,
    further: {
      400: ({ mac }) => [`/v1/locks/${mac}`, { body: { labels: { 'a b': 'c' } } }],
      404: () => [`/v1/locks/${UNKNOWN}`, { body: {} }],
      413: ({ mac }) => [`/v1/locks/${mac}`, { body: { name: 'x'.repeat(9_000) } }],
      415: ({ mac }) => [`/v1/locks/${mac}`, { body: '{}', headers: { 'content-type': 'text/csv' } }],
    },
  },
  'GET /v1/locks/{mac}/findings': {
    make: ({ mac }) => [`/v1/locks/${mac}/findings?limit=1`],
    status: 200,
    ofOthers: 404,
    further: {
      400: ({ mac }) => [`/v1/locks/${mac}/findings?cursor=x`],
      404: () => [`/v1/locks/${UNKNOWN}/findings`],
    },
  },
};
