/** The operators' routes for merchants' API keys (interfaces.md §2, §4). */
import { Type } from 'typebox';

import { formatDate } from '../../../../proto/wire/ping-json.js';
import { API_KEY_STATES, type ApiKeys } from '../../../accounts/api-keys.js';
import type { ApiKey } from '../../../store/contract/merchants/access-store.js';
import { ALL_KEY_SCOPES } from '../../../store/contract/merchants/key-scopes.js';
import { pick } from '../json/audit-terms.js';
import { readExpiry, textOf } from '../query.js';
import { type Route, withBody } from '../routes.js';
import { DateText, Exact, MaybeTime, Name, OneOf, Time } from '../schemas.js';

const Scopes = Type.Array(OneOf(ALL_KEY_SCOPES), { description: 'What the key may do.' });
const NewKey = Exact({
  name: Name,
  merchant: Type.Optional(Name),
  scopes: Type.Optional(Scopes),
  expires_at: Type.Optional(DateText),
});
/** The members of a key in answers. The key's text is returned only at its creation. */
const key = {
  id: Type.String(),
  merchant: Type.String(),
  name: Type.String(),
  state: OneOf(API_KEY_STATES),
  created_at: Time,
  last_used_at: MaybeTime,
  expires_at: MaybeTime,
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
      after: ({ body }, answer) => pick(answer ?? body, 'merchant', 'name', 'scopes', 'expires_at'),
    },
    ...withBody(
      NewKey,
      async ({ accounts, merchants: { apiKeys } }, { name, merchant, scopes, expires_at: expiry }) => {
        const expiresAtMs = expiry === undefined ? null : readExpiry(expiry);
        const { key, text } = await apiKeys.create(await accounts.resolveMerchant(merchant), name, {
          scopes,
          expiresAtMs,
        });
        return { ...keyJson(apiKeys, key), key: text };
      },
    ),
  },
  {
    method: 'GET',
    path: '/keys',
    operation: 'key.list',
    summary: 'Lists all API keys, or a merchant’s.',
    success: 200,
    query: Exact({ merchant: Type.Optional(Type.String()) }),
    answer: Type.Object({ keys: Type.Array(Type.Object(key)) }),
    handle: async ({ merchants: { apiKeys } }, { query }) => {
      return { keys: (await apiKeys.list(textOf(query, 'merchant'))).map((each) => keyJson(apiKeys, each)) };
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
    handle: async ({ merchants: { apiKeys } }, { params }) => keyJson(apiKeys, await apiKeys.revoke(params.id ?? '')),
  },
];

function keyJson(apiKeys: ApiKeys, apiKey: ApiKey) {
  const { publicId, merchantName, name, createdAtMs, lastUsedAtMs, expiresAtMs, revokedAtMs, scopes } = apiKey;
  return {
    id: publicId,
    merchant: merchantName,
    name,
    state: apiKeys.stateOf(apiKey),
    created_at: formatDate(createdAtMs),
    last_used_at: lastUsedAtMs === null ? null : formatDate(lastUsedAtMs),
    expires_at: expiresAtMs === null ? null : formatDate(expiresAtMs),
    revoked_at: revokedAtMs === null ? null : formatDate(revokedAtMs),
    scopes: [...scopes],
  };
}
