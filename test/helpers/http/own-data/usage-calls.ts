/**
 * Calls to the operations on usage and statements. The test makes each call with the key of the merchant that it is
 * about (`status`) and with another merchant's key, which gets that merchant's own data (`statusForOthers`), and the
 * calls of `otherStatuses` to get the other documented statuses.
 */
import type { CallTable } from './call-table.js';
import { SITE_CLOSED_MONTH } from './site.js';

export const USAGE_CALLS: CallTable = {
  'GET /v1/usage': {
    callFor: () => ['/v1/usage?limit=1'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/usage?month=2026-13'] },
  },
  'GET /v1/statements': {
    callFor: () => ['/v1/statements?limit=1'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/statements?cursor=x'] },
  },
  'GET /v1/statements/{month}': {
    callFor: () => [`/v1/statements/${SITE_CLOSED_MONTH}`],
    status: 200,
    statusForOthers: 200,
    otherStatuses: {
      400: () => [`/v1/statements/${SITE_CLOSED_MONTH}?format=pdf`],
      404: () => ['/v1/statements/2020-01'],
    },
  },
};
