/** The table of calls to every operation on a merchant's own data, for tests that make each of them. */
import type { CallTable } from './call-table.js';
import { COMMAND_CALLS } from './command-calls.js';
import { EVENT_CALLS } from './event-calls.js';
import { INVITATION_CALLS } from './invitation-calls.js';
import { LOCK_CALLS } from './lock-calls.js';
import { STREAM_CALLS } from './stream-calls.js';
import { USAGE_CALLS } from './usage-calls.js';
import { USER_CALLS } from './user-calls.js';
import { WEBHOOK_CALLS } from './webhook-calls.js';

/** All calls, by operation. */
export const OWN_DATA_CALLS: CallTable = {
  ...LOCK_CALLS,
  ...EVENT_CALLS,
  ...STREAM_CALLS,
  ...COMMAND_CALLS,
  ...USAGE_CALLS,
  ...USER_CALLS,
  ...INVITATION_CALLS,
  ...WEBHOOK_CALLS,
};
