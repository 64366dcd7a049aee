/** The operators' routes for merchants' API keys (interfaces.md §2, §4). */
import { Type } from 'typebox';

import { toDate } from '../../../../proto/wire/ping-json.js';
import type { ApiKey } from '../../../store/contract/merchants/access-store.js';
import { ALL_KEY_SCOPES } from '../../../store/contract/merchants/key-scopes.js';
import { pick } from '../json/audit-terms.js';
import { textOf } from '../query.js';
import { type Route, withBody } from '../routes.js';
import { Exact, MaybeTime, Name, OneOf, Time } from '../schemas.js';

const Scopes = Type.Array(OneOf(ALL_KEY_SCOPES), { description: 'What the key may do.' });
const NewKey = Exact({ name: Name, merchant: Type.Optional(Name), scopes: Type.Optional(Scopes) });
const key = {
  id: Type.String(),
  merchant: Type.String(),
  name: Type.String(),
  state: OneOf(['active', 'revoked']),
  created_at: Time,
  last_used_at: MaybeTime,
  revoked_at: MaybeTime,
  scopes: Scopes,
};

/** Every route for API keys. */
export const KEY_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/keys',
    operation: 'key.create',
    summary: 'Creates an API key for a merchant; returns it, once.',
    success: 201,
    answer: Type.Object({ ...key, key: Type.String() }),
    audit: {
      object: (_request, answer) => String(answer?.id ?? ''),
      after: ({ body }, answer) => pick(answer ?? body, 'merchant', 'name', 'scopes'),
    },
    ...withBody(NewKey, async ({ accounts, merchants }, { name, merchant, scopes }) => {
      const { key, text } = await merchants.apiKeys.create(await accounts.resolveMerchant(merchant), name, { scopes });
      return { ...keyJson(key), key: text };
    }),
  },
  {
    method: 'GET',
    path: '/keys',
    operation: 'key.list',
    summary: 'Lists all API keys, or a merchant’s.',
    success: 200,
    query: Exact({ merchant: Type.Optional(Type.String()) }),
    answer: Type.Object({ keys: Type.Array(Type.Object(key)) }),
    handle: async ({ merchants }, { query }) => {
      return { keys: (await merchants.apiKeys.list(textOf(query, 'merchant'))).map(keyJson) };
    },
  },
  {
    method: 'POST',
    path: '/keys/:id/revoke',
    operation: 'key.revoke',
    summary: 'Revokes an API key and its tokens.',
    success: 200,
    answer: Type.Object(key),
    audit: {
      object: ({ params }) => params.id ?? '',
      after: (_request, answer) => pick(answer, 'merchant', 'name'),
    },
    handle: async ({ merchants }, { params }) => keyJson(await merchants.apiKeys.revoke(params.id ?? '')),
  },
];

function keyJson({ publicId, merchantName, name, createdAtMs, lastUsedAtMs, revokedAtMs, scopes }: ApiKey) {
  return {
    id: publicId,
    merchant: merchantName,
    name,
    state: revokedAtMs === null ? 'active' : 'revoked',
    created_at: toDate(createdAtMs),
    last_used_at: lastUsedAtMs === null ? null : toDate(lastUsedAtMs),
    revoked_at: revokedAtMs === null ? null : toDate(revokedAtMs),
    scopes: [...scopes],
  };
}
