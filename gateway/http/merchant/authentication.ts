/**
 * Who calls (specification, Authentication; interfaces.md §2): an API key as the user of HTTP basic authentication with
 * an empty password, a bearer token in the header, or a token in the body.
 */
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import type { AccessToken, ApiKey, Scope } from '../../store/contract/access-store.js';
import { Refusal } from './refusal.js';

const BASIC = 'Basic realm="lockgate", charset="UTF-8"';
const BEARER = 'Bearer realm="lockgate"';

/**
 * The API key of a request. A password beside it is refused: whoever sends one takes the key for something else.
 *
 * @param members what the problem has beside ours
 * @throws Refusal 401
 */
export async function checkApiKey(
  parts: MerchantParts,
  authorization: string | undefined,
  members: Readonly<Record<string, string>> = {},
): Promise<ApiKey> {
  const encoded = /^Basic +([A-Za-z0-9+/_=-]+) *$/i.exec(authorization ?? '')?.[1];
  const [, user = ''] = /^([^:]*):$/.exec(Buffer.from(encoded ?? '', 'base64').toString('utf8')) ?? [];
  const key = await parts.apiKeys.check(user);
  if (key !== undefined) return key;
  const detail =
    encoded === undefined
      ? 'this wants an API key: send it as the user of HTTP basic authentication, with an empty password'
      : 'the API key is not in force, or a password was sent beside it';
  throw new Refusal({
    status: 401,
    code: 'unauthorized',
    detail,
    headers: { 'www-authenticate': BASIC },
    members,
  });
}

/** The bearer token of a request. @throws Refusal 401, or 403 where it lacks the scope */
export async function checkBearer(
  parts: MerchantParts,
  authorization: string | undefined,
  scope: Scope,
): Promise<AccessToken> {
  const given = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (given === undefined)
    throw new Refusal({
      status: 401,
      code: 'unauthorized',
      detail: 'this wants a bearer token: get one with POST /oauth/token',
      headers: { 'www-authenticate': `${BEARER}, scope="${scope}"` },
    });
  const token = await checkToken(parts, given);
  if (!token.scopes.includes(scope)) throw lacksScope(scope);
  return token;
}

/** @throws Refusal 401 where the token is not in force */
export async function checkToken(parts: MerchantParts, given: string): Promise<AccessToken> {
  const token = await parts.accessTokens.check(given);
  if (token !== null) return token;
  throw new Refusal({
    status: 401,
    code: 'unauthorized',
    detail: 'the token is not in force: it is for one hour, and ends with its API key',
    headers: { 'www-authenticate': `${BEARER}, error="invalid_token"` },
  });
}

/** The refusal of a token that is for other things (RFC 6750 §3.1). */
export function lacksScope(scope: Scope): Refusal {
  return new Refusal({
    status: 403,
    code: 'insufficient-scope',
    detail: `the token lacks the scope ${scope}`,
    headers: { 'www-authenticate': `${BEARER}, error="insufficient_scope", scope="${scope}"` },
  });
}
