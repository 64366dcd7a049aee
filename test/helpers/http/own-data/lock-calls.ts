/** Calls to the operations on locks. */
import { formatMac } from '../../../../proto/wire/mac.js';
import { testMac } from '../../gateway/test-gateway.js';
import type { CallTable } from './call-table.js';

/** Of no lock. */
const UNKNOWN = formatMac(testMac(99));

export const LOCK_CALLS: CallTable = {
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
