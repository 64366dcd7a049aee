/**
 * Calls to the operations on invitations of users of the dashboard. The test makes each call with the key of the
 * merchant that it is about (`status`) and with another merchant's key (`statusForOthers`), and the calls of
 * `otherStatuses` to get the other documented statuses.
 */
import type { CallTable } from './call-table.js';

export const INVITATION_CALLS: CallTable = {
  'GET /v1/invitations': {
    callFor: () => ['/v1/invitations?limit=1'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/invitations?limit=0'] },
  },
  'POST /v1/invitations': {
    callFor: () => ['/v1/invitations', { body: { dashboard: 'viewer', username: 'eve', expires_in: 3_600 } }],
    status: 201,
    statusForOthers: 201,
    createsNew: true,
    otherStatuses: {
      400: () => ['/v1/invitations', { body: { dashboard: 'admin' } }],
      // The merchant has a user “ada”, and names are compared without case.
      409: () => ['/v1/invitations', { body: { dashboard: 'owner', username: 'ADA' } }],
      413: () => ['/v1/invitations', { body: { dashboard: 'owner', username: 'x'.repeat(1_024) } }],
      415: () => ['/v1/invitations', { body: '{}', headers: { 'content-type': 'text/csv' } }],
    },
  },
  'DELETE /v1/invitations/{id}': {
    callFor: ({ invitationId }) => [`/v1/invitations/${invitationId}`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: { 404: () => ['/v1/invitations/x'] },
  },
};
