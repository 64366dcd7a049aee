/**
 * The dashboard's own routes for API keys (docs/console.md, "Keys and users"): list, create, rename, revoke.
 * Only owners may call them, with a session of the page.
 */
import { type Static, Type } from 'typebox';
import { parseDate } from '../../../../proto/date.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { ApiKeys } from '../../../accounts/api-keys.js';
import type { ApiKey } from '../../../store/contract/merchants/access-store.js';
import { inputRefusal } from '../refusal.js';
import type { Call, HttpAnswer, MerchantRoute } from '../route.js';
import { consoleRoute, IdParam, json, MAX_NAME_CHARS, noSuch, sessionOf } from './console-route.js';

const MAX_SCOPES = 20;
const MAX_DATE_CHARS = 40;

const NewKeyBody = Type.Object({
  name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }),
  scopes: Type.Optional(Type.Array(Type.String(), { maxItems: MAX_SCOPES })),
  expires_at: Type.Optional(Type.String({ maxLength: MAX_DATE_CHARS })),
});

const RenamedKeyBody = Type.Object({ name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }) });

/** The routes of this file. */
export const CONSOLE_KEY_ROUTES: readonly MerchantRoute[] = [
  consoleRoute({
    method: 'GET',
    path: '/console/keys',
    operationId: 'consoleKeys',
    summary: 'The merchant’s API keys.',
    roles: ['owner'],
    handle: async (call) => {
      const { apiKeys } = call.parts;
      const keys = await apiKeys.list(sessionOf(call).merchantName);
      return json({ data: keys.map((key) => keyJson(apiKeys, key)) });
    },
  }),
  consoleRoute({
    method: 'POST',
    path: '/console/keys',
    operationId: 'createConsoleKey',
    summary: 'Makes an API key, which is shown once.',
    roles: ['owner'],
    body: NewKeyBody,
    handle: createKey,
    audit: (_call, { body }) => {
      const { id, name, scopes, expires_at } = body as ReturnType<typeof keyJson>;
      return { action: 'key.create', object: id, after: { name, scopes, expires_at } };
    },
  }),
  consoleRoute({
    method: 'PATCH',
    path: '/console/keys/{id}',
    operationId: 'renameConsoleKey',
    summary: 'Gives an API key another name.',
    roles: ['owner'],
    params: IdParam,
    body: RenamedKeyBody,
    handle: async (call) => {
      const { apiKeys } = call.parts;
      const { publicId } = await findOwnKey(call);
      const { name } = call.body as Static<typeof RenamedKeyBody>;
      return json(keyJson(apiKeys, await apiKeys.rename(publicId, name)));
    },
    audit: ({ params }, { body }) => {
      return { action: 'key.rename', object: params.id ?? '', after: { name: (body as { name: string }).name } };
    },
  }),
  consoleRoute({
    method: 'POST',
    path: '/console/keys/{id}/revoke',
    operationId: 'revokeConsoleKey',
    summary: 'Revokes an API key and its tokens.',
    roles: ['owner'],
    params: IdParam,
    handle: async (call) => {
      const { apiKeys } = call.parts;
      const { publicId } = await findOwnKey(call);
      return json(keyJson(apiKeys, await apiKeys.revoke(publicId)));
    },
    audit: ({ params }) => ({ action: 'key.revoke', object: params.id ?? '', after: null }),
  }),
];

async function createKey(call: Call): Promise<HttpAnswer> {
  const { apiKeys } = call.parts;
  const { name, scopes, expires_at: expiry } = call.body as Static<typeof NewKeyBody>;
  const expiresAtMs = expiry === undefined ? null : parseDate(expiry);
  if (Number.isNaN(expiresAtMs)) {
    const detail = 'expected a date such as 2026-11-20T06:00:00.000Z';
    throw inputRefusal('body', [{ pointer: '/expires_at', detail }]);
  }
  const { key, text } = await apiKeys.create(sessionOf(call).merchantName, name, { scopes, expiresAtMs });
  return { ...json({ ...keyJson(apiKeys, key), key: text }), status: 201 };
}

/** The merchant's key that the path names. @throws Refusal 404 */
async function findOwnKey({ parts, params, merchantId }: Call): Promise<ApiKey> {
  const key = await parts.store.access.findKey(params.id ?? '');
  if (key === null || key.merchantId !== merchantId) throw noSuch('key');
  return key;
}

function keyJson(apiKeys: ApiKeys, key: ApiKey) {
  const { publicId, name, createdAtMs, lastUsedAtMs, expiresAtMs, scopes } = key;
  const dates = {
    created_at: formatDate(createdAtMs),
    last_used_at: lastUsedAtMs === null ? null : formatDate(lastUsedAtMs),
    expires_at: expiresAtMs === null ? null : formatDate(expiresAtMs),
  };
  return { id: publicId, name, state: apiKeys.stateOf(key), ...dates, scopes: [...scopes] };
}
