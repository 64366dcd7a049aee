/**
 * Calls to the stream of a merchant's locks. With `seconds=0` the stream ends after the locks' current state. The test
 * makes the call with the merchant's own key (`status`) and with another merchant's, who gets the stream of its own
 * locks (`statusForOthers`).
 */
import type { CallTable } from './call-table.js';

export const STREAM_CALLS: CallTable = {
  'GET /v1/stream': {
    callFor: () => ['/v1/stream?seconds=0'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/stream?seconds=-1'] },
  },
};
