/** The route `POST /oauth/token`: issues tokens to callers with an API key (RFC 6749 §4.4; interfaces.md §2). */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../../proto/clock.js';
import { TOKEN_LIFE } from '../../accounts/access-tokens.js';
import { SCOPES, type Scope } from '../../store/contract/merchants/access-store.js';
import { Refusal } from './refusal.js';
import {
  FORM_TYPE,
  LACKS_SPEC,
  type MerchantRoute,
  problemResponse,
  tooLarge,
  tooMany,
  UNAUTHORIZED,
  UNAVAILABLE,
  WRONG_TYPE,
} from './route.js';

const TokenRequest = Type.Object({
  grant_type: Type.String({ description: 'client_credentials' }),
  scope: Type.Optional(
    Type.String({ description: `Any of ${SCOPES.join(', ')}, separated by spaces; by default all.` }),
  ),
});

const Token = Type.Object(
  {
    access_token: Type.String(),
    token_type: Type.String(),
    expires_in: Type.Integer({ description: 'In seconds: an hour, or less if the API key expires before.' }),
    scope: Type.String(),
  },
  { title: 'Token' },
);

/** Many times what a grant and two scopes need. */
const MAX_FORM_BYTES = 4 * 1024;
const EXPIRES_IN_SECONDS = TOKEN_LIFE / Seconds(1);

export const TOKEN_ROUTES: readonly MerchantRoute[] = [
  {
    method: 'POST',
    path: '/oauth/token',
    operationId: 'issueToken',
    tag: 'tokens',
    summary: 'Issues a token for one hour, or until the API key expires.',
    description: 'Errors are problem documents that also have OAuth’s `error` and `error_description` (RFC 6749 §5.2).',
    scheme: 'api-key',
    keyScope: 'spec',
    body: TokenRequest,
    bodyBytes: MAX_FORM_BYTES,
    bodyType: FORM_TYPE,
    bodyExample: { grant_type: 'client_credentials', scope: 'pets:write' },
    responses: {
      200: {
        description: 'The token.',
        schema: Token,
        example: {
          access_token: 'lgt_…',
          token_type: 'Bearer',
          expires_in: EXPIRES_IN_SECONDS,
          scope: SCOPES.join(' '),
        },
      },
      400: problemResponse('invalid_request, unsupported_grant_type or invalid_scope.'),
      401: { ...UNAUTHORIZED, description: 'invalid_client: no API key, or an invalid one.' },
      403: { ...LACKS_SPEC, description: 'unauthorized_client: the API key lacks the scope spec.' },
      413: tooLarge(MAX_FORM_BYTES),
      415: WRONG_TYPE,
      429: tooMany(),
      503: UNAVAILABLE,
    },
    refuse: (faults) => oauthRefusal('invalid_request', 'a parameter is missing or repeated', faults),
    handle: async ({ parts, key, body }) => {
      const { grant_type: grant, scope } = body as Static<typeof TokenRequest>;
      if (grant !== 'client_credentials')
        throw oauthRefusal('unsupported_grant_type', 'grant_type: expected client_credentials');
      const scopes = readScopes(scope);
      if (key === undefined) throw new Error('authentication passed without an API key');
      const { token, life } = await parts.accessTokens.issue(key, scopes);
      return {
        status: 200,
        headers: { pragma: 'no-cache' },
        body: {
          access_token: token,
          token_type: 'Bearer',
          expires_in: Math.floor(life / Seconds(1)),
          scope: scopes.join(' '),
        },
      };
    },
  },
];

/** The scopes that a request names; all if it names none. @throws Refusal 400 `invalid-scope` */
function readScopes(text: string | undefined): readonly Scope[] {
  const requested = (text ?? '').split(' ').filter((scope) => scope !== '');
  if (requested.length === 0) return SCOPES;
  if (requested.some((scope) => !SCOPES.some((known) => known === scope)))
    throw oauthRefusal('invalid_scope', `scope: expected any of ${SCOPES.join(' and ')}, separated by spaces`);
  return SCOPES.filter((scope) => requested.includes(scope));
}

function oauthRefusal(
  error: 'invalid_request' | 'unsupported_grant_type' | 'invalid_scope',
  detail: string,
  faults?: ConstructorParameters<typeof Refusal>[0]['faults'],
): Refusal {
  const members = { error, error_description: detail };
  return new Refusal({ status: 400, code: error.replaceAll('_', '-'), detail, faults, members });
}
