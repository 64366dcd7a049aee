/** The operators' routes for invitations of merchants' users (docs/console.md, "Opening it"). */
import { Type } from 'typebox';
import { LockgateError } from '../../../../proto/errors.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { invitationPath } from '../../../console/invitation-link.js';
import { DASHBOARD_ROLES } from '../../../store/contract/merchants/dashboard-roles.js';
import { type Invitation, MAX_INVITATIONS_PER_MERCHANT } from '../../../store/contract/merchants/invitation-store.js';
import { MAX_USERNAME_CHARS } from '../../../store/contract/merchants/people-store.js';
import { pick } from '../json/audit-terms.js';
import { findMerchant, findOpenMerchant } from '../merchant-name.js';
import { readExpiry, readId, textOf } from '../query.js';
import { type Route, withBody } from '../routes.js';
import { DateText, Exact, MaybeText, Name, OneOf, Time } from '../schemas.js';

const NewInvitation = Exact({
  merchant: Type.Optional(Name),
  username: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_USERNAME_CHARS })),
  dashboard: OneOf(DASHBOARD_ROLES),
  expires_at: Type.Optional(DateText),
});
const OfMerchant = Exact({ merchant: Type.Optional(Type.String()) });

/** The members of an invitation in answers. The token is returned only at its creation. */
const invitation = {
  id: Type.Integer(),
  merchant: Type.String(),
  username: MaybeText,
  dashboard: OneOf(DASHBOARD_ROLES),
  created_at: Time,
  expires_at: Time,
};

/** Every route for invitations. */
export const INVITATION_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/invitations',
    operation: 'invitation.create',
    summary: 'Invites a user of a merchant’s dashboard; returns the token and the link’s path, once.',
    success: 201,
    answer: Type.Object({ ...invitation, token: Type.String(), path: Type.String() }),
    audit: {
      object: (_request, answer) => String(answer?.username ?? answer?.id ?? ''),
      after: ({ body }, answer) => pick(answer ?? body, 'id', 'merchant', 'dashboard', 'expires_at'),
    },
    ...withBody(NewInvitation, async (parts, { merchant, username, dashboard, expires_at: expiry }) => {
      const { id } = await findOpenMerchant(parts, merchant);
      const terms = { username, role: dashboard, expiresAtMs: expiry === undefined ? undefined : readExpiry(expiry) };
      const created = await parts.merchants.invitations.create(id, terms);
      return { ...invitationJson(created.invitation), token: created.token, path: invitationPath(created.token) };
    }),
  },
  {
    method: 'GET',
    path: '/invitations',
    operation: 'invitation.list',
    summary: 'Lists a merchant’s open invitations, oldest first; there are at most 100.',
    success: 200,
    query: OfMerchant,
    answer: Type.Object({ invitations: Type.Array(Type.Object(invitation)) }),
    handle: async (parts, { query }) => {
      const { id } = await findMerchant(parts, textOf(query, 'merchant'));
      const invitations = await parts.merchants.invitations.list(id, MAX_INVITATIONS_PER_MERCHANT);
      return { invitations: invitations.map(invitationJson) };
    },
  },
  {
    method: 'DELETE',
    path: '/invitations/:id',
    operation: 'invitation.withdraw',
    summary: 'Withdraws an open invitation: its link stops working.',
    success: 200,
    query: OfMerchant,
    answer: Type.Object(invitation),
    audit: {
      object: ({ params }) => params.id ?? '',
      after: (_request, answer) => pick(answer, 'merchant', 'username', 'dashboard'),
    },
    handle: async (parts, { params, query }) => {
      const merchant = await findMerchant(parts, textOf(query, 'merchant'));
      const id = readId(params.id);
      const withdrawn = await parts.merchants.invitations.withdraw(merchant.id, id);
      if (withdrawn !== null) return invitationJson(withdrawn);
      throw new LockgateError('no-such-invitation', `${merchant.name} has no open invitation ${id}`);
    },
  },
];

function invitationJson({ id, merchantName, username, dashboardRole, createdAtMs, expiresAtMs }: Invitation) {
  return {
    id,
    merchant: merchantName,
    username,
    dashboard: dashboardRole,
    created_at: formatDate(createdAtMs),
    expires_at: formatDate(expiresAtMs),
  };
}
