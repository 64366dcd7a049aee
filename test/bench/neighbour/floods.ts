/** The floods of the hostile neighbour: each route of the merchants' port in turn, with and without a key. */
import type { HttpRoute } from '../../../gateway/http/merchant/route.js';
import { HTTP_ROUTES } from '../../../gateway/http/merchant/routes.js';
import { basic } from '../../helpers/http/merchant-call.js';
import type { Flood } from './http-flood.js';

/** The neighbour's key and token as a merchant. */
export interface Credentials {
  readonly key: string;
  readonly token: string;
}

/** A flood with its name, but without its target and its number of connections. */
export interface NamedFlood {
  readonly name: string;
  /** Whether it needs a merchant's key. */
  readonly hasKey: boolean;
  readonly make: (credentials: Credentials) => Omit<Flood, 'port' | 'from' | 'connections'>;
}

const MEBIBYTE = 1024 * 1024;
/** The maximum number of users in a call. */
const USERS = JSON.stringify(Array.from({ length: 1000 }, () => ({})));

/** The most expensive bodies, by operation. Operations without an entry use the documented example. */
const BODIES: Readonly<Record<string, string>> = {
  createUsersWithListInput: USERS,
  createUsersWithArrayInput: JSON.stringify([{ username: 'x'.repeat(200), password: 'x'.repeat(500) }]),
  issueToken: 'grant_type=client_credentials',
};

/** Query strings of operations that need one. */
const QUERIES: Readonly<Record<string, string>> = { loginUser: '?username=ada&password=x' };

/** All floods. */
export function floods(): NamedFlood[] {
  const rows = HTTP_ROUTES.flatMap((row) => [...('handle' in row ? [floodOf(row, true)] : []), floodOf(row, false)]);
  const stranger = (name: string, terms: Partial<Omit<Flood, 'port'>>): NamedFlood => {
    return { name, hasKey: false, make: () => ({ method: 'GET', path: '/', headers: {}, body: '', ...terms }) };
  };
  const json = { 'content-type': 'application/json' };
  return [
    ...rows,
    stranger('1 MiB to /test_webhook', { method: 'POST', path: '/test_webhook', headers: json, body: large() }),
    stranger('1 MiB to /v1/pet', { method: 'POST', path: '/v1/pet', headers: json, body: large() }),
    stranger('/openapi.json', { path: '/openapi.json' }),
    stranger('/docs', { path: '/docs' }),
    stranger('an unknown path', { path: '/nothing' }),
    {
      name: '1 MiB of users, with a key',
      hasKey: true,
      make: ({ key }) => ({
        method: 'POST',
        path: '/v2/user/createWithList',
        headers: { ...json, authorization: basic(key) },
        body: `[{"firstName":1,"x":"${'x'.repeat(MEBIBYTE - 30)}"}]`,
      }),
    },
  ];
}

function large(): string {
  return `{"access_token":"${'x'.repeat(MEBIBYTE)}"}`;
}

function floodOf(row: HttpRoute, hasKey: boolean): NamedFlood {
  const isMerchants = 'handle' in row;
  const name = `${row.method} ${row.path}${isMerchants ? (hasKey ? ', with a key' : ', without a key') : ''}`;
  return {
    name,
    hasKey,
    make: ({ key, token }) => {
      const body = isMerchants ? bodyOf(row.operationId, row.bodyExample, token) : '';
      const type = isMerchants && row.body !== undefined ? { 'content-type': row.bodyType ?? 'application/json' } : {};
      const authorization = row.scheme === 'bearer' ? `Bearer ${token}` : basic(key);
      const knows = hasKey && (row.scheme === 'bearer' || row.scheme === 'api-key');
      const headers = { ...type, ...(knows && { authorization }) };
      const given = hasKey ? body : body.replace(token, 'x');
      return { method: row.method, path: row.path + (QUERIES[row.operationId] ?? ''), headers, body: given };
    },
  };
}

function bodyOf(operationId: string, example: unknown, token: string): string {
  const given = BODIES[operationId] ?? (example === undefined ? '' : JSON.stringify(example));
  return given.replace(/lgt_[^"]*/, token);
}
