/** The operator's routes for merchants' API keys (interfaces.md §2, §4). */
import { Type } from 'typebox';
import { toDate } from '../../proto/ping-json.js';
import type { ApiKey } from '../store/access-store.js';
import { textOf } from './query.js';
import { Name, type Route, withBody } from './routes.js';

const NewKey = Type.Object({ name: Name, merchant: Type.Optional(Name) });

/** Every route for API keys. */
export const KEY_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/keys',
    summary: 'Makes an API key for a merchant; answers it, once.',
    success: 201,
    ...withBody(NewKey, async ({ accounts, merchants }, { name, merchant }) => {
      const { key, text } = await merchants.apiKeys.create(await accounts.whichMerchant(merchant), name);
      return { ...keyJson(key), key: text };
    }),
  },
  {
    method: 'GET',
    path: '/keys',
    summary: 'All API keys, or a merchant’s.',
    success: 200,
    handle: async ({ merchants }, { query }) => {
      return { keys: (await merchants.apiKeys.list(textOf(query, 'merchant'))).map(keyJson) };
    },
  },
  {
    method: 'POST',
    path: '/keys/:id/revoke',
    summary: 'Ends an API key and its tokens.',
    success: 200,
    handle: async ({ merchants }, { params }) => keyJson(await merchants.apiKeys.revoke(params.id ?? '')),
  },
];

function keyJson({ publicId, merchantName, name, createdAtMs, lastUsedAtMs, revokedAtMs }: ApiKey) {
  return {
    id: publicId,
    merchant: merchantName,
    name,
    state: revokedAtMs === null ? 'active' : 'revoked',
    created_at: toDate(createdAtMs),
    last_used_at: lastUsedAtMs === null ? null : toDate(lastUsedAtMs),
    revoked_at: revokedAtMs === null ? null : toDate(revokedAtMs),
  };
}
