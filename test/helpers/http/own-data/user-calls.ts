/** Calls to the operations on users and their roles on the dashboard. */
import type { CallTable } from './call-table.js';
import type { Subject } from './site.js';

/** The site's users: an owner, and two without a role. Their ids differ between merchants. */
export const siteUserId = ({ merchantId }: Pick<Subject, 'merchantId'>, number: 1 | 2 | 3): string =>
  String(merchantId * 10 + number);

/** Makes each new name different. */
let added = 0;

const TOO_LONG = 'x'.repeat(9_000);
const CSV = { 'content-type': 'text/csv' };

export const USER_CALLS: CallTable = {
  'GET /v1/users': {
    make: () => ['/v1/users?limit=1'],
    status: 200,
    ofOthers: 200,
    further: { 400: () => ['/v1/users?limit=0'] },
  },
  'POST /v1/users': {
    make: () => {
      added += 1;
      return ['/v1/users', { body: { username: `user-${added}`, email: 'eve@example.com' } }];
    },
    status: 201,
    ofOthers: 201,
    makesNew: true,
    further: {
      400: () => ['/v1/users', { body: { email: 'eve@example.com' } }],
      409: () => ['/v1/users', { body: { username: 'ADA' } }],
      413: () => ['/v1/users', { body: { username: TOO_LONG } }],
      415: () => ['/v1/users', { body: '{}', headers: CSV }],
    },
  },
  'PATCH /v1/users/{id}': {
    make: (about) => [`/v1/users/${siteUserId(about, 2)}`, { body: { dashboard: 'staff', email: 'bo@example.com' } }],
    status: 200,
    ofOthers: 404,
    further: {
      400: (about) => [`/v1/users/${siteUserId(about, 2)}`, { body: { dashboard: 'admin' } }],
      404: () => ['/v1/users/99', { body: {} }],
      409: (about) => [`/v1/users/${siteUserId(about, 1)}`, { body: { dashboard: 'none' } }],
      413: (about) => [`/v1/users/${siteUserId(about, 2)}`, { body: { email: TOO_LONG } }],
      415: (about) => [`/v1/users/${siteUserId(about, 2)}`, { body: '{}', headers: CSV }],
    },
  },
  'DELETE /v1/users/{id}': {
    make: (about) => [`/v1/users/${siteUserId(about, 3)}`],
    status: 200,
    ofOthers: 404,
    further: {
      404: () => ['/v1/users/x'],
      409: (about) => [`/v1/users/${siteUserId(about, 1)}`],
    },
  },
};
