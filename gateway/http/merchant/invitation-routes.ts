/**
 * The routes that an invited person's browser calls: they show an invitation and accept it (docs/http.md, "Accept an
 * invitation"). The invitation's token is the only credential. It is in the body, never in a path or a query, which
 * others could log. own-data/people/invitation-routes.ts has the merchant's own routes.
 */
import { type Static, Type } from 'typebox';
import { formatDate } from '../../../proto/wire/ping-json.js';
import { DASHBOARD_ROLES } from '../../store/contract/merchants/dashboard-roles.js';
import type { Invitation } from '../../store/contract/merchants/invitation-store.js';
import { MAX_USERNAME_CHARS } from '../../store/contract/merchants/people-store.js';
import type { AuditWho } from '../../store/contract/operators/audit-store.js';
import { type MerchantRoute, problemResponse, tooLarge, tooMany, UNAVAILABLE, WRONG_TYPE } from './route.js';

const MAX_BODY_BYTES = 8 * 1024;
const MAX_TOKEN_CHARS = 100;
const MAX_PASSWORD_CHARS = 512;

const token = Type.String({ maxLength: MAX_TOKEN_CHARS, description: 'The part of the link after `invitation=`.' });
const LookUp = Type.Object({ token }, { title: 'InvitationLookUp' });
const Acceptance = Type.Object(
  {
    token,
    username: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_USERNAME_CHARS,
        description: 'Needed if the invitation names none; else the same name, or left out.',
      }),
    ),
    password: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }),
  },
  { title: 'InvitationAcceptance' },
);

const role = Type.Unsafe<string>({ type: 'string', enum: [...DASHBOARD_ROLES] });
const Offer = Type.Object(
  {
    merchant: Type.String(),
    username: Type.Union([Type.String(), Type.Null()], {
      description: 'The name of the new user; null if the invited person chooses it.',
    }),
    dashboard: role,
    expires_at: Type.String({ format: 'date-time' }),
  },
  { title: 'InvitationOffer' },
);
const Accepted = Type.Object(
  { merchant: Type.String(), username: Type.String(), dashboard: role },
  { title: 'AcceptedInvitation' },
);

const NO_SUCH_INVITATION = problemResponse('The invitation is unknown, used, withdrawn or expired.');
const COMMON = {
  413: tooLarge(MAX_BODY_BYTES),
  415: WRONG_TYPE,
  429: tooMany('Over 10 wrong tokens in 5 minutes from this address. Or: '),
  503: UNAVAILABLE,
};
const EXAMPLE = { merchant: 'Amber Bikes', username: 'ada', dashboard: 'owner' };

const common = { method: 'POST', tag: 'users', scheme: 'none', keyScope: 'users', bodyBytes: MAX_BODY_BYTES } as const;

/** The routes without an API key. */
export const INVITATION_ROUTES: readonly MerchantRoute[] = [
  {
    ...common,
    path: '/v1/invitations/look-up',
    operationId: 'lookUpInvitation',
    summary: 'Shows what an invitation offers, to the person who has its link.',
    description: 'Needs no API key.',
    body: LookUp,
    bodyExample: { token: 'lgi_…' },
    responses: {
      200: {
        description: 'The invitation.',
        schema: Offer,
        example: { ...EXAMPLE, expires_at: '2026-11-27T06:30:00.000Z' },
      },
      400: problemResponse('The body is not JSON, or a member is missing or not valid.'),
      404: NO_SUCH_INVITATION,
      ...COMMON,
    },
    handle: async ({ parts, body, address }) => {
      const found = await parts.invitations.find((body as Static<typeof LookUp>).token, address);
      return { status: 200, body: { ...offerOf(found, found.username), expires_at: formatDate(found.expiresAtMs) } };
    },
  },
  {
    ...common,
    path: '/v1/invitations/accept',
    operationId: 'acceptInvitation',
    summary: 'Accepts an invitation: adds its user, with a password.',
    description: 'Needs no API key. An invitation can be accepted once.',
    body: Acceptance,
    bodyExample: { token: 'lgi_…', username: 'ada', password: 'correct horse' },
    responses: {
      201: { description: 'The new user.', schema: Accepted, example: EXAMPLE },
      400: problemResponse('The body is not JSON, or a member is missing or not valid.'),
      404: NO_SUCH_INVITATION,
      409: problemResponse('The name is taken; the invitation stays open.'),
      ...COMMON,
    },
    handle: async ({ parts, body, address, headers, signal }) => {
      const { username, ...others } = body as Static<typeof Acceptance>;
      const accepted = await parts.invitations.accept({ ...others, username, address }, signal);
      const { invitation } = accepted;
      const who: AuditWho = {
        ...{ actor: 'user', address, agent: agentOf(headers), osUser: null, token: null, key: null },
        merchant: { id: invitation.merchantId, name: invitation.merchantName },
        user: accepted.username,
      };
      const after = { dashboard: invitation.dashboardRole, invitation: invitation.id };
      parts.audit.note('invitation.accept', accepted.username, after, who);
      return { status: 201, body: offerOf(invitation, accepted.username) };
    },
  },
];

function offerOf<Name extends string | null>({ merchantName, dashboardRole }: Invitation, username: Name) {
  return { merchant: merchantName, username, dashboard: dashboardRole };
}

function agentOf({ 'user-agent': agent }: Readonly<Record<string, string | string[] | undefined>>): string | null {
  return typeof agent === 'string' ? agent : null;
}
