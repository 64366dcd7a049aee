/**
 * The routes for a merchant's invitations of users of the dashboard (interfaces.md §2). ../../invitation-routes.ts has
 * the routes of the invited person.
 */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../../../../proto/clock.js';
import { formatDate } from '../../../../../proto/wire/ping-json.js';
import { INVITATION_LIFE, MAX_INVITATION_LIFE } from '../../../../accounts/invitations.js';
import { invitationPath } from '../../../../console/invitation-link.js';
import { DASHBOARD_ROLES, type DashboardRole } from '../../../../store/contract/merchants/dashboard-roles.js';
import type { Invitation } from '../../../../store/contract/merchants/invitation-store.js';
import { MAX_USERNAME_CHARS } from '../../../../store/contract/merchants/people-store.js';
import { Refusal } from '../../refusal.js';
import { type Call, type HttpAnswer, type MerchantRoute, problemResponse, tooLarge, WRONG_TYPE } from '../../route.js';
import { PAGE_QUERY, pageAnswer, pageResponse, readPage } from '../list.js';
import { ownDataRoute } from '../own-data-route.js';

const MAX_BODY_BYTES = 1024;

const role = Type.Unsafe<DashboardRole>({ type: 'string', enum: [...DASHBOARD_ROLES] });
const members = {
  id: Type.Integer(),
  username: Type.Union([Type.String(), Type.Null()], { description: 'Null: the invited person chooses.' }),
  dashboard: role,
  created_at: Type.String({ format: 'date-time' }),
  expires_at: Type.String({ format: 'date-time' }),
};
const InvitationSchema = Type.Object(members, { title: 'Invitation' });
const Created = Type.Object(
  {
    ...members,
    token: Type.String({ description: 'Shown only here.' }),
    path: Type.String({ description: 'The path and fragment of the link, to append to the base URL of this API.' }),
  },
  { title: 'NewInvitation' },
);
const Body = Type.Object(
  {
    dashboard: role,
    username: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_USERNAME_CHARS })),
    expires_in: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_INVITATION_LIFE / Seconds(1),
        description: `In seconds; ${INVITATION_LIFE / Seconds(1)} (7 days) by default.`,
      }),
    ),
  },
  { title: 'InvitationTerms' },
);

const EXAMPLE = {
  id: 3,
  username: 'ada',
  dashboard: 'owner',
  created_at: '2026-11-20T06:30:00.000Z',
  expires_at: '2026-11-27T06:30:00.000Z',
};
const NO_SUCH_INVITATION = problemResponse('The merchant has no such open invitation.');

/** Every route for a merchant's invitations. */
export const OWN_INVITATION_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/invitations',
    operationId: 'listInvitations',
    tag: 'users',
    keyScope: 'users',
    summary: 'Lists open invitations, oldest first.',
    query: Type.Object(PAGE_QUERY),
    responses: {
      200: pageResponse('The invitations.', InvitationSchema, EXAMPLE),
      400: problemResponse('`limit` or `cursor` is not valid.'),
    },
    handle: async (call) => {
      const { limit, after } = readPage(call, 'invitations', ['number']);
      const found = await call.parts.invitations.list(call.merchantId, limit + 1, Number(after?.[0] ?? 0));
      const shown = found.slice(0, limit);
      const last = shown.at(-1);
      const next = found.length > limit && last !== undefined ? [last.id] : null;
      return pageAnswer(call, 'invitations', { data: shown.map(invitationJson), next });
    },
  }),
  ownDataRoute({
    method: 'POST',
    path: '/v1/invitations',
    operationId: 'inviteUser',
    tag: 'users',
    keyScope: 'users',
    summary: 'Invites a user of the dashboard; returns a link that can be used once.',
    description: 'A new invitation for a name replaces the one before it.',
    body: Body,
    bodyBytes: MAX_BODY_BYTES,
    bodyExample: { dashboard: 'owner', username: 'ada' },
    responses: {
      201: {
        description: 'The invitation with its token.',
        schema: Created,
        example: { ...EXAMPLE, token: 'lgi_…', path: '/#invitation=lgi_…' },
      },
      400: problemResponse('The body is not JSON, or a member is missing or not valid.'),
      409: problemResponse('A user of this name exists, or 100 invitations are open.'),
      413: tooLarge(MAX_BODY_BYTES),
      415: WRONG_TYPE,
    },
    handle: async ({ parts, merchantId, body }) => {
      const { dashboard, username, expires_in: seconds } = body as Static<typeof Body>;
      const expiresAtMs = seconds === undefined ? undefined : parts.clock.now() + Seconds(seconds);
      const terms = { role: dashboard, username, expiresAtMs };
      const { invitation, token } = await parts.invitations.create(merchantId, terms);
      return { status: 201, body: { ...invitationJson(invitation), token, path: invitationPath(token) } };
    },
    audit: (_call, answer) => {
      const { id, username, dashboard, expires_at } = answer.body as ReturnType<typeof invitationJson>;
      return { action: 'invitation.create', object: username ?? String(id), after: { id, dashboard, expires_at } };
    },
  }),
  ownDataRoute({
    method: 'DELETE',
    path: '/v1/invitations/{id}',
    operationId: 'withdrawInvitation',
    tag: 'users',
    keyScope: 'users',
    summary: 'Withdraws an invitation: its link stops working.',
    params: Type.Object({ id: Type.String({ description: 'The invitation’s id, from the list.' }) }),
    responses: {
      200: { description: 'The withdrawn invitation.', schema: InvitationSchema, example: EXAMPLE },
      404: NO_SUCH_INVITATION,
    },
    handle: withdraw,
    audit: ({ params }) => ({ action: 'invitation.withdraw', object: params.id ?? '', after: null }),
  }),
];

/** @throws Refusal 404, also for another merchant's invitation and a malformed id */
async function withdraw({ parts, merchantId, params }: Call): Promise<HttpAnswer> {
  // No invitation has the id 0.
  const id = /^\d{1,15}$/.test(params.id ?? '') ? Number(params.id) : 0;
  const withdrawn = await parts.invitations.withdraw(merchantId, id);
  if (withdrawn !== null) return { status: 200, body: invitationJson(withdrawn) };
  throw new Refusal({ status: 404, code: 'no-such-invitation', detail: 'there is no such invitation' });
}

function invitationJson({ id, username, dashboardRole, createdAtMs, expiresAtMs }: Invitation) {
  return {
    id,
    username,
    dashboard: dashboardRole,
    created_at: formatDate(createdAtMs),
    expires_at: formatDate(expiresAtMs),
  };
}
