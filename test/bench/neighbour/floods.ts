/**
 * The floods that the hostile client of the bench's row `neighbour` sends: to each route of the merchants' HTTP port in
 * turn, with and without a merchant's key.
 */
import type { HttpRoute } from '../../../gateway/http/merchant/route.js';
import { HTTP_ROUTES } from '../../../gateway/http/merchant/routes.js';
import { basicAuthorization } from '../../helpers/http/merchant-call.js';
import type { CallTerms } from '../../helpers/http/own-data/call-table.js';
import { OWN_DATA_CALLS } from '../../helpers/http/own-data/calls.js';
import type { HostileMerchant } from './hostile-merchant.js';
import type { Flood } from './http-flood.js';

type FloodRequest = Omit<Flood, 'port' | 'sourceAddress' | 'connections'>;

/** A flood with its name, but without its addresses and its number of connections. */
export interface NamedFlood {
  readonly name: string;
  /** Whether it needs a merchant's key. */
  readonly hasKey: boolean;
  readonly makeRequest: (merchant: HostileMerchant) => FloodRequest;
}

/** The most entries that a page of a list may have. */
const LONGEST_PAGE = 1_000;
const MEBIBYTE = 1024 * 1024;
/** 1,000 users, the maximum number in a call. */
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
  const routeFloods = HTTP_ROUTES.flatMap((route) => [
    ...(takesKey(route) ? [floodOf(route, true)] : []),
    floodOf(route, false),
  ]);
  const floodWithoutKey = (name: string, overrides: Partial<Omit<Flood, 'port'>>): NamedFlood => {
    return {
      name,
      hasKey: false,
      makeRequest: () => ({ method: 'GET', path: '/', headers: {}, body: '', ...overrides }),
    };
  };
  const json = { 'content-type': 'application/json' };
  return [
    ...routeFloods,
    floodWithoutKey('1 MiB to /test_webhook', {
      method: 'POST',
      path: '/test_webhook',
      headers: json,
      body: oneMebibyteBody(),
    }),
    floodWithoutKey('1 MiB to /v1/pet', { method: 'POST', path: '/v1/pet', headers: json, body: oneMebibyteBody() }),
    floodWithoutKey('/openapi.json', { path: '/openapi.json' }),
    floodWithoutKey('/docs', { path: '/docs' }),
    floodWithoutKey('an unknown path', { path: '/nothing' }),
    {
      // Just short enough to be parsed; the first name is not a text, so nothing is stored.
      name: '1 MiB to /v2/user/createWithList, with a key',
      hasKey: true,
      makeRequest: ({ key }) => ({
        method: 'POST',
        path: '/v2/user/createWithList',
        headers: { ...json, authorization: basicAuthorization(key) },
        body: `[{"firstName":1,"x":"${'x'.repeat(MEBIBYTE - 30)}"}]`,
      }),
    },
  ];
}

/** A body slightly above the limit of 1 MiB. */
function oneMebibyteBody(): string {
  return `{"access_token":"${'x'.repeat(MEBIBYTE)}"}`;
}

/** Whether the route has an implementation that asks for credentials. */
function takesKey(route: HttpRoute): boolean {
  return 'handle' in route && route.scheme !== 'none';
}

/** A flood of this route, with or without credentials. */
function floodOf(route: HttpRoute, hasKey: boolean): NamedFlood {
  const isImplemented = 'handle' in route;
  const name = `${route.method} ${route.path}${takesKey(route) ? (hasKey ? ', with a key' : ', without a key') : ''}`;
  return {
    name,
    hasKey,
    makeRequest: (merchant) => {
      const { key, token } = merchant;
      const ownCall = OWN_DATA_CALLS[`${route.method} ${route.path}`];
      if (ownCall !== undefined)
        return ownDataRequest(route.method, ownCall.callFor(merchant.subject), hasKey ? key : null);
      if (route.path.includes('{')) throw new Error(`${route.path} has no call in test/helpers/http/own-data`);
      const body = isImplemented ? bodyOf(route.operationId, route.bodyExample, token) : '';
      const type =
        isImplemented && route.body !== undefined ? { 'content-type': route.bodyType ?? 'application/json' } : {};
      const authorization = route.scheme === 'bearer' ? `Bearer ${token}` : basicAuthorization(key);
      const sendsCredentials = hasKey && (route.scheme === 'bearer' || route.scheme === 'api-key');
      const headers = { ...type, ...(sendsCredentials && { authorization }) };
      // Without a key no valid credential may be sent, and so no token in the body either.
      const sentBody = hasKey ? body : body.replace(token, 'x');
      return { method: route.method, path: route.path + (QUERIES[route.operationId] ?? ''), headers, body: sentBody };
    },
  };
}

/** A call to a merchant's own data, with the longest page if it is a list. @param key null for a call without one */
function ownDataRequest(routeMethod: string, [examplePath, options = {}]: CallTerms, key: string | null): FloodRequest {
  const { method = routeMethod, body, headers = {} } = options;
  const text = body === undefined || typeof body === 'string' ? (body ?? '') : JSON.stringify(body);
  const path = examplePath.replace(/\blimit=\d+/, `limit=${LONGEST_PAGE}`);
  const authorization = key === null ? {} : { authorization: basicAuthorization(key) };
  const type = text === '' ? {} : { 'content-type': 'application/json' };
  return { method, path, headers: { ...type, ...headers, ...authorization }, body: text };
}

/** The body of an operation, with the merchant's token in place of the example's. */
function bodyOf(operationId: string, example: unknown, token: string): string {
  const sentBody = BODIES[operationId] ?? (example === undefined ? '' : JSON.stringify(example));
  return sentBody.replace(/lgt_[^"]*/, token);
}
