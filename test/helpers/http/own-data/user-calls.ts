/** Calls to the operations on users and their roles on the dashboard. */
import type { CallTable } from './call-table.js';
import type { Subject } from './site.js';

/** The id of one of a merchant's users in site.ts: 1 is an owner, 2 and 3 have no role. */
export const siteUserId = ({ merchantId }: Pick<Subject, 'merchantId'>, number: 1 | 2 | 3): string =>
  String(merchantId * 10 + number);

/** The number of users added so far; makes each new name different. */
let addedUsers = 0;

/** Longer than a request body may be. */
const TOO_LONG = 'x'.repeat(9_000);
/** A media type that the operations refuse. */
const CSV = { 'content-type': 'text/csv' };

/**
 * `status` is the answer to the merchant that the call is about, `statusForOthers` that to another merchant with the
 * same call. 400: a wrong query or body; 404: no such user; 409: a taken name, or the last owner; 413: too long; 415:
 * no JSON.
 */
export const USER_CALLS: CallTable = {
  'GET /v1/users': {
    callFor: () => ['/v1/users?limit=1'],
    status: 200,
    statusForOthers: 200,
    otherStatuses: { 400: () => ['/v1/users?limit=0'] },
  },
  'POST /v1/users': {
    callFor: () => {
      addedUsers += 1;
      return ['/v1/users', { body: { username: `user-${addedUsers}`, email: 'eve@example.com' } }];
    },
    status: 201,
    statusForOthers: 201,
    createsNew: true,
    otherStatuses: {
      400: () => ['/v1/users', { body: { email: 'eve@example.com' } }],
      409: () => ['/v1/users', { body: { username: 'ADA' } }],
      413: () => ['/v1/users', { body: { username: TOO_LONG } }],
      415: () => ['/v1/users', { body: '{}', headers: CSV }],
    },
  },
  'PATCH /v1/users/{id}': {
    callFor: (about) => [
      `/v1/users/${siteUserId(about, 2)}`,
      { body: { dashboard: 'staff', email: 'bo@example.com' } },
    ],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      400: (about) => [`/v1/users/${siteUserId(about, 2)}`, { body: { dashboard: 'admin' } }],
      404: () => ['/v1/users/99', { body: {} }],
      // The last owner must remain an owner.
      409: (about) => [`/v1/users/${siteUserId(about, 1)}`, { body: { dashboard: 'none' } }],
      413: (about) => [`/v1/users/${siteUserId(about, 2)}`, { body: { email: TOO_LONG } }],
      415: (about) => [`/v1/users/${siteUserId(about, 2)}`, { body: '{}', headers: CSV }],
    },
  },
  'DELETE /v1/users/{id}': {
    callFor: (about) => [`/v1/users/${siteUserId(about, 3)}`],
    status: 200,
    statusForOthers: 404,
    otherStatuses: {
      404: () => ['/v1/users/x'],
      409: (about) => [`/v1/users/${siteUserId(about, 1)}`],
    },
  },
};
