/**
 * Calls to the operation that reads a merchant's events. The test makes the call with the merchant's own key (`status`)
 * and with another merchant's, which gets that merchant's own events (`statusForOthers`), and the calls of
 * `otherStatuses` to get the other documented statuses.
 */
import { encodeCursor } from '../../../../gateway/http/merchant/own-data/cursor.js';
import type { CallTable } from './call-table.js';
import { SITE_SWEPT_MS } from './site.js';

export const EVENT_CALLS: CallTable = {
  'GET /v1/events': {
    callFor: () => ['/v1/events?limit=1&types=cellular,gps'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: {
      400: () => ['/v1/events?reasons=theft'],
      // A cursor from before the time up to which events were deleted because of their age.
      410: ({ merchantId }) => [`/v1/events?after=${encodeCursor(`events ${merchantId}`, [1, SITE_SWEPT_MS - 1])}`],
    },
  },
};
