/**
 * Authenticates the caller of a merchant's request (specification, Authentication; interfaces.md §2): by an API key as
 * the user of HTTP basic authentication with an empty password, a bearer token in the header, or a token in the body.
 */
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import type { AccessToken, ApiKey, Scope } from '../../store/contract/merchants/access-store.js';
import type { KeyScope } from '../../store/contract/merchants/key-scopes.js';
import { Refusal } from './refusal.js';

const BASIC_CHALLENGE = 'Basic realm="lockgate", charset="UTF-8"';
const BEARER_CHALLENGE = 'Bearer realm="lockgate"';

/**
 * Checks and returns the API key of a request. A key with a password is refused, since such a client takes the key for
 * a user name.
 *
 * @param members additional members of the problem document
 * @throws Refusal 401
 */
export async function checkApiKey(
  parts: MerchantParts,
  authorization: string | undefined,
  members: Readonly<Record<string, string>> = {},
): Promise<ApiKey> {
  const encoded = /^Basic +([A-Za-z0-9+/_=-]+) *$/i.exec(authorization ?? '')?.[1];
  // A user, a colon, and no password after it.
  const [, user = ''] = /^([^:]*):$/.exec(Buffer.from(encoded ?? '', 'base64').toString('utf8')) ?? [];
  const key = await parts.apiKeys.check(user);
  if (key !== undefined) return key;
  const detail =
    encoded === undefined
      ? 'an API key is required: send it as the user of HTTP basic authentication, with an empty password'
      : 'the API key is invalid, or a password was sent with it';
  throw new Refusal({
    status: 401,
    code: 'unauthorized',
    detail,
    headers: { 'www-authenticate': BASIC_CHALLENGE },
    members,
  });
}

/** @throws Refusal 403 if the key lacks the scope; `members` are additional members of the problem document */
export function checkKeyScope(key: ApiKey, scope: KeyScope, members: Readonly<Record<string, string>> = {}): void {
  if (key.scopes.includes(scope)) return;
  const detail = `the API key lacks the scope ${scope}; it has ${key.scopes.join(', ') || 'none'}`;
  throw new Refusal({ status: 403, code: 'insufficient-scope', detail, members });
}

/** Checks and returns the bearer token of a request. @throws Refusal 401, or 403 if the token lacks the scope */
export async function checkBearer(
  parts: MerchantParts,
  authorization: string | undefined,
  scope: Scope,
): Promise<AccessToken> {
  const sentToken = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
  if (sentToken === undefined)
    throw new Refusal({
      status: 401,
      code: 'unauthorized',
      detail: 'a bearer token is required: get one with POST /oauth/token',
      headers: { 'www-authenticate': `${BEARER_CHALLENGE}, scope="${scope}"` },
    });
  const token = await checkToken(parts, sentToken);
  if (!token.scopes.includes(scope)) throw lacksScope(scope);
  return token;
}

/** @throws Refusal 401 if the token is not valid */
export async function checkToken(parts: MerchantParts, sentToken: string): Promise<AccessToken> {
  const token = await parts.accessTokens.check(sentToken);
  if (token !== null) return token;
  throw new Refusal({
    status: 401,
    code: 'unauthorized',
    detail: 'the token is not valid: it expires after one hour, or when its API key is revoked',
    headers: { 'www-authenticate': `${BEARER_CHALLENGE}, error="invalid_token"` },
  });
}

/** The refusal of a token without the required scope (RFC 6750 §3.1). */
export function lacksScope(scope: Scope): Refusal {
  return new Refusal({
    status: 403,
    code: 'insufficient-scope',
    detail: `the token lacks the scope ${scope}`,
    headers: { 'www-authenticate': `${BEARER_CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
  });
}
