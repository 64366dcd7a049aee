/** The routes for a merchant's users and their roles on the dashboard (interfaces.md §2). Ids are int64, so strings. */
import { type Static, Type } from 'typebox';
import { formatDate } from '../../../../../proto/wire/ping-json.js';
import { withFaultsOfOneUser } from '../../../../accounts/invitations.js';
import type { AuditAction } from '../../../../audit/actions.js';
import {
  DASHBOARD_CHOICES,
  DASHBOARD_ROLES,
  type DashboardChoice,
  dashboardRole,
} from '../../../../store/contract/merchants/dashboard-roles.js';
import {
  INT64_MAX,
  INT64_MIN,
  type ListedUser,
  MAX_USERNAME_CHARS,
} from '../../../../store/contract/merchants/people-store.js';
import { Refusal } from '../../refusal.js';
import { type Call, type MerchantRoute, problemResponse, tooLarge, WRONG_TYPE } from '../../route.js';
import { PAGE_QUERY, pageAnswer, pageResponse, readPage } from '../list.js';
import { ownDataRoute } from '../own-data-route.js';

const MAX_BODY_BYTES = 8 * 1024;
const MAX_EMAIL_CHARS = 320;
const MAX_PASSWORD_CHARS = 512;

const MaybeText = Type.Union([Type.String(), Type.Null()]);
const UserSchema = Type.Object(
  {
    id: Type.String({ description: 'An int64.' }),
    username: MaybeText,
    email: MaybeText,
    dashboard: Type.Unsafe<string | null>({
      anyOf: [{ type: 'string', enum: [...DASHBOARD_ROLES] }, { type: 'null' }],
      description: 'The role on the dashboard; null for a user without one.',
    }),
    has_password: Type.Boolean(),
    created_at: Type.String({ format: 'date-time' }),
  },
  { title: 'DashboardUser' },
);

const email = Type.Optional(Type.String({ minLength: 1, maxLength: MAX_EMAIL_CHARS }));
const password = Type.Optional(Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }));
const NewUserBody = Type.Object(
  { username: Type.String({ minLength: 1, maxLength: MAX_USERNAME_CHARS }), email, password },
  { title: 'NewDashboardUser' },
);
const UserChange = Type.Object(
  {
    dashboard: Type.Optional(Type.Unsafe<DashboardChoice>({ type: 'string', enum: [...DASHBOARD_CHOICES] })),
    email,
    password,
  },
  { title: 'DashboardUserChange' },
);

const EXAMPLE = {
  id: '12',
  username: 'ada',
  email: 'ada@example.com',
  dashboard: 'owner',
  has_password: true,
  created_at: '2026-11-20T06:30:00.000Z',
};
const NO_SUCH_USER = problemResponse('The merchant has no such user.');
const LAST_OWNER = problemResponse('The user is the last owner.');
const IdParam = Type.Object({ id: Type.String({ description: 'The user’s id, from the list.' }) });

/** Every route for users and their roles. */
export const DASHBOARD_USER_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/users',
    operationId: 'listUsers',
    tag: 'users',
    keyScope: 'users',
    summary: 'Lists users with their roles on the dashboard, by id.',
    query: Type.Object(PAGE_QUERY),
    responses: {
      200: pageResponse('The users.', UserSchema, EXAMPLE),
      400: problemResponse('`limit` or `cursor` is not valid.'),
    },
    handle: async (call) => {
      const { parts, merchantId } = call;
      const { limit, after } = readPage(call, 'users', ['string']);
      const afterId = after === undefined ? null : readInt64(String(after[0]));
      const users = await parts.store.people.listUsers({ merchantId, afterId, limit: limit + 1 });
      const data = users.slice(0, limit);
      const last = data.at(-1);
      const next = users.length > limit && last !== undefined ? [String(last.id)] : null;
      return pageAnswer(call, 'users', { data: data.map(userJson), next });
    },
  }),
  ownDataRoute({
    method: 'POST',
    path: '/v1/users',
    operationId: 'addUser',
    tag: 'users',
    keyScope: 'users',
    summary: 'Adds a user, without a role on the dashboard.',
    body: NewUserBody,
    bodyBytes: MAX_BODY_BYTES,
    bodyExample: { username: 'bo', email: 'bo@example.com', password: 'correct horse' },
    responses: {
      201: { description: 'The user.', schema: UserSchema, example: { ...EXAMPLE, username: 'bo', dashboard: null } },
      400: problemResponse('The body is not JSON, or a member is missing or not valid.'),
      409: problemResponse('The name is taken.'),
      413: tooLarge(MAX_BODY_BYTES),
      415: WRONG_TYPE,
    },
    handle: async ({ parts, merchantId, body, signal }) => {
      const { username, email: address = null, password: typed = null } = body as Static<typeof NewUserBody>;
      const absent = { id: null, firstName: null, lastName: null, phone: null, userStatus: null };
      const user = { ...absent, username, email: address, password: typed };
      // Adds a list of one; faults then point into the body, which is that user.
      await withFaultsOfOneUser(() => parts.users.add(merchantId, [user], signal));
      const added = await parts.store.people.findLogin(merchantId, username);
      const stored = added === null ? null : await parts.store.people.findUser(merchantId, added.id);
      if (stored === null) throw noSuchUser();
      return { status: 201, body: userJson(stored) };
    },
    audit: auditUser('user.add'),
  }),
  ownDataRoute({
    method: 'PATCH',
    path: '/v1/users/{id}',
    operationId: 'changeUser',
    tag: 'users',
    keyScope: 'users',
    summary: 'Changes a user’s role on the dashboard, email address or password.',
    description: 'What is left out stays. A new password ends the user’s sessions. The last owner stays one.',
    params: IdParam,
    body: UserChange,
    bodyBytes: MAX_BODY_BYTES,
    bodyExample: { dashboard: 'staff' },
    responses: {
      200: { description: 'The user.', schema: UserSchema, example: { ...EXAMPLE, dashboard: 'staff' } },
      400: problemResponse('The body is not JSON, or a member is not valid.'),
      404: NO_SUCH_USER,
      409: LAST_OWNER,
      413: tooLarge(MAX_BODY_BYTES),
      415: WRONG_TYPE,
    },
    handle: async (call) => {
      const { parts, merchantId, body, signal } = call;
      const { id } = await findOwnUser(call);
      const { dashboard, email: address, password: typed } = body as Static<typeof UserChange>;
      const role = dashboard === undefined ? undefined : dashboardRole(dashboard);
      const change = { dashboardRole: role, email: address, password: typed };
      await parts.users.change(merchantId, id, change, signal);
      return { status: 200, body: userJson(await findOwnUser(call)) };
    },
    audit: auditUser('user.set'),
  }),
  ownDataRoute({
    method: 'DELETE',
    path: '/v1/users/{id}',
    operationId: 'removeUser',
    tag: 'users',
    keyScope: 'users',
    summary: 'Removes a user and ends its sessions.',
    params: IdParam,
    responses: {
      200: { description: 'The removed user.', schema: UserSchema, example: EXAMPLE },
      404: NO_SUCH_USER,
      409: LAST_OWNER,
    },
    handle: async (call) => {
      const user = await findOwnUser(call);
      await call.parts.store.people.removeUser(call.merchantId, user.id);
      return { status: 200, body: userJson(user) };
    },
    audit: auditUser('user.remove'),
  }),
];

/** What the audit log records of a change of a user, without its address. */
function auditUser(action: AuditAction): NonNullable<MerchantRoute['audit']> {
  return ({ body }, answer) => {
    const { id, username, dashboard } = answer.body as ReturnType<typeof userJson>;
    const newPassword = typeof (body as { readonly password?: unknown } | null)?.password === 'string';
    return { action, object: username ?? id, after: { id, dashboard, ...(newPassword && { new_password: true }) } };
  };
}

/** The caller's user that the path names. @throws Refusal 404, also for another merchant's user and a malformed id */
async function findOwnUser({ parts, merchantId, params }: Call): Promise<ListedUser> {
  const id = readInt64(params.id ?? '');
  const user = id === null ? null : await parts.store.people.findUser(merchantId, id);
  if (user === null) throw noSuchUser();
  return user;
}

function noSuchUser(): Refusal {
  return new Refusal({ status: 404, code: 'no-such-user', detail: 'there is no such user' });
}

/** Null if the text is no int64. */
function readInt64(text: string): bigint | null {
  const id = /^-?\d{1,19}$/.test(text) ? BigInt(text) : null;
  return id !== null && id >= INT64_MIN && id <= INT64_MAX ? id : null;
}

function userJson(user: ListedUser) {
  return {
    id: String(user.id),
    username: user.username,
    email: user.email,
    dashboard: user.dashboardRole,
    has_password: user.hasPassword,
    created_at: formatDate(user.createdAtMs),
  };
}
