/** The operators' routes for their own named tokens (interfaces.md §4). */
import { Type } from 'typebox';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { OPERATOR_TOKEN_STATES, type OperatorTokens } from '../../../accounts/operator-tokens.js';
import { OPERATOR_ROLES, type OperatorTokenRecord } from '../../../store/contract/operators/operator-token-store.js';
import { pick } from '../json/audit-terms.js';
import { readExpiry } from '../query.js';
import { type Route, withBody } from '../routes.js';
import { DateText, Exact, MaybeTime, Name, OneOf, Time } from '../schemas.js';

const NewToken = Exact({ name: Name, role: OneOf(OPERATOR_ROLES), expires_at: Type.Optional(DateText) });
const token = {
  name: Type.String(),
  role: OneOf(OPERATOR_ROLES),
  state: OneOf(OPERATOR_TOKEN_STATES),
  created_at: Time,
  last_used_at: MaybeTime,
  expires_at: MaybeTime,
  revoked_at: MaybeTime,
};

/** Every route for operators' tokens. */
export const TOKEN_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/tokens',
    operation: 'token.create',
    summary: 'Creates a named token for an operator; returns it, once.',
    success: 201,
    answer: Type.Object({ ...token, token: Type.String() }),
    audit: {
      object: ({ body }) => (body as { readonly name: string }).name,
      after: ({ body }, answer) => pick(answer ?? body, 'role', 'expires_at'),
    },
    ...withBody(NewToken, async ({ operatorTokens }, { name, role, expires_at: expiry }) => {
      const expiresAtMs = expiry === undefined ? null : readExpiry(expiry);
      const { token: made, text } = await operatorTokens.create(name, role, expiresAtMs);
      return { ...tokenJson(operatorTokens, made), token: text };
    }),
  },
  {
    method: 'GET',
    path: '/tokens',
    operation: 'token.list',
    summary: 'Lists the named tokens of operators, the latest revoked ones too.',
    success: 200,
    answer: Type.Object({ tokens: Type.Array(Type.Object(token)) }),
    handle: async ({ operatorTokens }) => {
      return { tokens: (await operatorTokens.list()).map((each) => tokenJson(operatorTokens, each)) };
    },
  },
  {
    method: 'POST',
    path: '/tokens/:name/revoke',
    operation: 'token.revoke',
    summary: 'Revokes a named token, and closes the streams that were opened with it.',
    success: 200,
    answer: Type.Object(token),
    audit: {
      object: ({ params }) => params.name ?? '',
      after: (_request, answer) => pick(answer, 'role'),
    },
    handle: async ({ operatorTokens }, { params }) =>
      tokenJson(operatorTokens, await operatorTokens.revoke(params.name ?? '')),
  },
];

function tokenJson(operatorTokens: OperatorTokens, record: OperatorTokenRecord) {
  const { name, role, createdAtMs, lastUsedAtMs, expiresAtMs, revokedAtMs } = record;
  return {
    name,
    role,
    state: operatorTokens.stateOf(record),
    created_at: formatDate(createdAtMs),
    last_used_at: lastUsedAtMs === null ? null : formatDate(lastUsedAtMs),
    expires_at: expiresAtMs === null ? null : formatDate(expiresAtMs),
    revoked_at: revokedAtMs === null ? null : formatDate(revokedAtMs),
  };
}
