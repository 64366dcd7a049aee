/** The operators' routes for merchants' users (interfaces.md §4). Ids are int64, so they are strings in JSON. */
import { type Static, Type } from 'typebox';
import { LockgateError } from '../../../../proto/errors.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { withFaultsOfOneUser } from '../../../accounts/invitations.js';
import {
  DASHBOARD_CHOICES,
  DASHBOARD_ROLES,
  dashboardRole,
} from '../../../store/contract/merchants/dashboard-roles.js';
import {
  INT64_MAX,
  INT64_MIN,
  type ListedUser,
  MAX_USERNAME_CHARS,
} from '../../../store/contract/merchants/people-store.js';
import { pick } from '../json/audit-terms.js';
import { findMerchant, findOpenMerchant } from '../merchant-name.js';
import { cutPage, NextCursor, nextCursor, pageQuery, readPage, wrongCursor } from '../page.js';
import { textOf } from '../query.js';
import { type OperatorParts, type Route, withBody } from '../routes.js';
import { Exact, MaybeText, Name, OneOf, OrNull, Time } from '../schemas.js';

const MAX_USERS_PER_PAGE = 1_000;
const MAX_PASSWORD_CHARS = 512;
/** The longest address that mail allows: 64 characters, @, 255 characters. */
const MAX_EMAIL_CHARS = 320;

const NewUser = Exact({
  username: Type.String({ minLength: 1, maxLength: MAX_USERNAME_CHARS }),
  merchant: Type.Optional(Name),
  password: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS })),
  email: Type.Optional(Type.String({ maxLength: MAX_EMAIL_CHARS })),
  dashboard: Type.Optional(OneOf(DASHBOARD_ROLES)),
});

const Change = Exact({
  merchant: Type.Optional(Name),
  password: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS })),
  dashboard: Type.Optional(OneOf(DASHBOARD_CHOICES)),
});
const Dashboard = OrNull(OneOf(DASHBOARD_ROLES, 'The role on the dashboard.'));

const Added = Type.Object({
  username: Type.String(),
  merchant: Type.String(),
  email: MaybeText,
  has_password: Type.Boolean(),
  dashboard: Dashboard,
});
const Listed = Type.Object({
  id: Type.String({ description: 'An int64.' }),
  username: Type.String(),
  merchant: Type.String(),
  email: MaybeText,
  /** A number that merchants give their users; it means nothing to the gateway. */
  user_status: OrNull(Type.Integer()),
  has_password: Type.Boolean(),
  dashboard: Dashboard,
  created_at: Time,
});

/** Every route for users. */
export const USER_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/users',
    operation: 'user.add',
    summary: 'Adds a user to a merchant.',
    success: 201,
    answer: Added,
    audit: {
      object: ({ body }) => (body as Static<typeof NewUser>).username,
      after: ({ body }, answer) => pick(answer ?? body, 'merchant', 'has_password', 'dashboard'),
    },
    ...withBody(NewUser, async (parts, body) => {
      const { username, password = null, email = null, dashboard = null } = body;
      const { id: merchantId, name: merchant } = await findOpenMerchant(parts, body.merchant);
      const absentMembers = { id: null, firstName: null, lastName: null, phone: null, userStatus: null };
      const user = { ...absentMembers, username, password, email, dashboardRole: dashboard };
      // Never aborted: one password is hashed soon enough.
      const { signal } = new AbortController();
      // Adds a list of one; faults then point into the body, which is that user.
      await withFaultsOfOneUser(() => parts.merchants.users.add(merchantId, [user], signal, 'operator'));
      return { username, merchant, email, has_password: password !== null, dashboard };
    }),
  },
  {
    method: 'GET',
    path: '/users',
    operation: 'user.list',
    summary: 'Lists a merchant’s users by id, page by page.',
    success: 200,
    query: Exact({ merchant: Type.Optional(Type.String()), ...pageQuery(MAX_USERS_PER_PAGE, MAX_USERS_PER_PAGE) }),
    answer: Type.Object({ users: Type.Array(Listed), next_cursor: NextCursor }),
    handle: async (parts, { query }) => {
      const { id: merchantId, name: merchant } = await findMerchant(parts, textOf(query, 'merchant'));
      const listKey = `users ${JSON.stringify(merchant)}`;
      const { limit, after } = readPage(query, listKey, ['string'], MAX_USERS_PER_PAGE);
      const afterId = after === undefined ? null : readInt64(String(after[0]));
      const found = await parts.store.people.listUsers({ merchantId, afterId, limit: limit + 1 });
      const { shown, end } = cutPage(found, limit, ({ id }) => [String(id)]);
      return { users: shown.map(userJson), next_cursor: nextCursor(listKey, end) };
    },
  },
  {
    method: 'PATCH',
    path: '/users/:name',
    operation: 'user.set',
    summary: 'Changes a user’s role on the dashboard or password. A new password ends the user’s sessions.',
    success: 200,
    body: Change,
    answer: Listed,
    audit: {
      object: ({ params }) => params.name ?? '',
      after: ({ body }) => {
        const { merchant, dashboard, password } = body as Static<typeof Change>;
        return { ...pick({ merchant, dashboard }, 'merchant', 'dashboard'), new_password: password !== undefined };
      },
    },
    handle: async (parts, { params, body }) => {
      const { merchant, password, dashboard } = body as Static<typeof Change>;
      const user = await findUser(parts, merchant, params.name ?? '');
      const role = dashboard === undefined ? undefined : dashboardRole(dashboard);
      const change = { password, dashboardRole: role };
      // Never aborted, as above.
      const { signal } = new AbortController();
      await parts.merchants.users.change(user.merchantId, user.id, change, signal, 'operator');
      return userJson((await parts.store.people.findUser(user.merchantId, user.id)) ?? user);
    },
  },
  {
    method: 'DELETE',
    path: '/users/:name',
    operation: 'user.remove',
    summary: 'Removes a user and ends its sessions.',
    success: 200,
    query: Exact({ merchant: Type.Optional(Type.String()) }),
    answer: Listed,
    audit: {
      object: ({ params }) => params.name ?? '',
      after: (_request, answer) => pick(answer, 'merchant', 'id'),
    },
    handle: async (parts, { params, query }) => {
      const user = await findUser(parts, textOf(query, 'merchant'), params.name ?? '');
      await parts.store.people.removeUser(user.merchantId, user.id);
      return userJson(user);
    },
  },
];

/** The user with this name. @throws LockgateError `no-such-user`, `no-such-merchant` */
async function findUser(
  parts: Pick<OperatorParts, 'accounts' | 'store'>,
  merchantName: string | undefined,
  username: string,
): Promise<ListedUser & { readonly merchantId: number }> {
  const { id: merchantId, name } = await findMerchant(parts, merchantName);
  const { people } = parts.store;
  const found = await people.findLogin(merchantId, username);
  const user = found === null ? null : await people.findUser(merchantId, found.id);
  if (user === null)
    throw new LockgateError('no-such-user', `${name} has no user ${JSON.stringify(username.slice(0, 80))}`);
  return { ...user, merchantId };
}

/** The id in a cursor. @throws LockgateError `input-cursor` */
function readInt64(text: string): bigint {
  const id = /^-?\d{1,19}$/.test(text) ? BigInt(text) : undefined;
  if (id === undefined || id < INT64_MIN || id > INT64_MAX) throw wrongCursor();
  return id;
}

function userJson({
  id,
  username,
  merchantName,
  email,
  userStatus,
  hasPassword,
  dashboardRole,
  createdAtMs,
}: ListedUser) {
  return {
    id: String(id),
    username,
    merchant: merchantName,
    email,
    user_status: userStatus,
    has_password: hasPassword,
    dashboard: dashboardRole,
    created_at: formatDate(createdAtMs),
  };
}
