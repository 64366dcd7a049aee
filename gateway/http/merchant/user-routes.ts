/** The routes for users and their sessions: operations 3 to 6 of the specification (interfaces.md §2). */
import { type Static, Type } from 'typebox';
import { Hours, Seconds } from '../../../proto/clock.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import { GUESS_WINDOW, MAX_GUESSES, MAX_STRANGER_GUESSES } from '../../accounts/login-guard.js';
import { SESSION_LIFE, type UserWithPassword } from '../../accounts/users.js';
import type { Fairness } from '../../fairness/fairness-settings.js';
import { OverBudget } from '../../fairness/over-budget.js';
import { MAX_BODY_BYTES } from '../shared/limits.js';
import { toBigInt } from './check-value.js';
import { MAX_LONG_NUMBERS, MAX_VALUES } from './json-body.js';
import { Int64, shortText } from './pet-routes.js';
import { Refusal } from './refusal.js';
import {
  type Call,
  LACKS_SPEC,
  type MerchantRoute,
  problemResponse,
  tooLarge,
  tooMany,
  UNAUTHORIZED,
  UNAVAILABLE,
  WRONG_TYPE,
} from './route.js';

/** The limits of a JSON body for the documentation: "32,768 values, 4,096". */
const MAX_VALUES_TEXT = [MAX_VALUES, MAX_LONG_NUMBERS].map((maximum) => maximum.toLocaleString('en')).join(' values, ');

/** Maximum number of users that one call creates (interfaces.md §2). */
export const MAX_USERS_PER_CALL = 1_000;
/** Even percent-encoded, a password of this length fits into the request line of a login. */
const MAX_PASSWORD_CHARS = 512;

const COOKIE = 'lockgate_session';
/** Browsers send the cookie to the paths below this one, the user operations, only. */
const COOKIE_PATH = '/v2/user';
const SESSION_PREFIX = 'logged in user session:';

/** The limit of wrong passwords, in the unit of the header `x-rate-limit`. */
const GUESSES_PER_HOUR = (MAX_GUESSES * Hours(1)) / GUESS_WINDOW;

const TOO_MANY_GUESSES = `Over ${MAX_GUESSES} wrong passwords in 5 minutes for this account from this address, or over
${MAX_STRANGER_GUESSES} for the account, or from the address for all accounts.`.replaceAll('\n', ' ');

const UserStatus = Type.Unsafe<number>({ type: 'integer', format: 'int32', description: 'User Status' });

function userListOf(maxLength: number) {
  const username =
    'Unique, compared without case and surrounding spaces and after NFKC normalization. Without control characters.';
  return Type.Array(
    Type.Object(
      {
        id: Type.Optional(Int64({ description: 'Any free id; by default the next one.' })),
        username: Type.Optional(shortText(maxLength, { description: username })),
        firstName: Type.Optional(shortText(maxLength)),
        lastName: Type.Optional(shortText(maxLength)),
        email: Type.Optional(shortText(maxLength)),
        password: Type.Optional(
          shortText(MAX_PASSWORD_CHARS, { description: 'Stored hashed (argon2id). A user without one can’t log in.' }),
        ),
        phone: Type.Optional(shortText(maxLength)),
        userStatus: Type.Optional(UserStatus),
      },
      { title: 'User' },
    ),
  );
}

type UserList = Static<ReturnType<typeof userListOf>>;

const Credentials = Type.Object({
  username: Type.String({ description: 'The user name for login.' }),
  password: Type.String({ maxLength: MAX_PASSWORD_CHARS, description: 'The password for login in clear text.' }),
});

const logIn: MerchantRoute = {
  method: 'GET',
  path: '/v2/user/login',
  operationId: 'loginUser',
  tag: 'users',
  summary: 'Logs a user in.',
  scheme: 'api-key',
  keyScope: 'spec',
  query: Credentials,
  responses: {
    200: {
      description: 'The session, also set as a cookie.',
      schema: Type.String(),
      example: `${SESSION_PREFIX}lgu_…`,
      headers: {
        'x-rate-limit': {
          description: 'Wrong passwords per hour that one address may try for one account.',
          type: 'integer',
        },
        'x-expires-after': { description: 'When the session expires (RFC 3339).', type: 'string' },
        'set-cookie': { description: `${COOKIE}, for ${COOKIE_PATH}.`, type: 'string' },
      },
    },
    400: problemResponse('Invalid username/password supplied.'),
    401: UNAUTHORIZED,
    403: LACKS_SPEC,
    429: tooMany(`${TOO_MANY_GUESSES} Or: `),
    503: UNAVAILABLE,
  },
  refuse: (faults) => wrongCredentials(faults),
  handle: async ({ parts, merchantId, query, address, isHttps }) => {
    const { username, password } = query as Static<typeof Credentials>;
    const outcome = await parts.users.logIn({ merchantId, username, password, address });
    if (outcome.result === 'refused') throw wrongCredentials();
    if (outcome.result === 'retry-later')
      throw OverBudget.rate(
        'login-guesses',
        'too many wrong passwords for this account or from this address; wait before the next attempt',
        outcome.retryAfterMs,
      );
    return {
      status: 200,
      headers: {
        'x-rate-limit': String(GUESSES_PER_HOUR),
        'x-expires-after': formatDate(outcome.expiresAtMs),
        'set-cookie': cookie(outcome.token, SESSION_LIFE, isHttps),
      },
      body: SESSION_PREFIX + outcome.token,
    };
  },
};

const logOut: MerchantRoute = {
  method: 'GET',
  path: '/v2/user/logout',
  operationId: 'logoutUser',
  tag: 'users',
  summary: 'Ends the current session.',
  scheme: 'api-key',
  keyScope: 'spec',
  headers: Type.Object({
    'x-session': Type.Optional(Type.String({ description: 'The session, for clients without cookies.' })),
  }),
  responses: {
    200: { description: 'Successful operation, even if there was no session.' },
    401: UNAUTHORIZED,
    403: LACKS_SPEC,
    429: tooMany(),
    503: UNAVAILABLE,
  },
  handle: async ({ parts, merchantId, headers, isHttps }) => {
    for (const token of sessionsOf(headers)) await parts.users.logOut(merchantId, token);
    return { status: 200, headers: { 'set-cookie': cookie('', 0, isHttps) } };
  },
};

const createUsers = ({ nameLength }: Fairness) =>
  ({
    method: 'POST',
    tag: 'users',
    scheme: 'api-key',
    keyScope: 'spec',
    body: userListOf(nameLength),
    bodyBytes: MAX_BODY_BYTES,
    bodyExample: [{ id: 7, username: 'ada', firstName: 'Ada', password: 'correct horse', userStatus: 1 }],
    maxItems: MAX_USERS_PER_CALL,
    // The public Petstore document names no content type for these two operations, so clients generated from it send
    // plain text.
    takesPlainText: true,
    responses: {
      200: { description: 'Successful operation: all users were added.' },
      400: problemResponse('Not an array of user objects, or an invalid member; the answer names index and member.'),
      401: UNAUTHORIZED,
      403: LACKS_SPEC,
      409: problemResponse('A user name or id occurs twice in the list or is taken; no user was added.'),
      413: tooLarge(MAX_BODY_BYTES, `, or has over ${MAX_VALUES_TEXT} long numbers or ${MAX_USERS_PER_CALL} users`),
      415: WRONG_TYPE,
      429: tooMany(),
      503: UNAVAILABLE,
    },
    handle: async ({ parts, merchantId, body, signal }: Call) => {
      const users = (body as UserList).map(toUser);
      parts.budgets.chargeUsers(merchantId, users.length);
      await parts.users.add(merchantId, users, signal);
      return { status: 200 };
    },
  }) as const satisfies Partial<MerchantRoute>;

/** Operations 3 to 6. */
export const userRoutes = (fairness: Fairness): readonly MerchantRoute[] => [
  logIn,
  logOut,
  {
    ...createUsers(fairness),
    path: '/v2/user/createWithList',
    operationId: 'createUsersWithListInput',
    summary: 'Creates users from a list: all or none.',
  },
  {
    ...createUsers(fairness),
    path: '/v2/user/createWithArray',
    operationId: 'createUsersWithArrayInput',
    summary: 'Creates users from an array: all or none. The same as createWithList.',
  },
];

/** The same sentence for an unknown user and a wrong password, so that the caller can't tell them apart. */
function wrongCredentials(faults?: ConstructorParameters<typeof Refusal>[0]['faults']): Refusal {
  const detail = 'Invalid username/password supplied';
  return new Refusal({ status: 400, code: 'wrong-credentials', detail, faults });
}

function toUser(user: UserList[number]): UserWithPassword {
  const { id, username = null, firstName = null, lastName = null, email = null, phone = null, userStatus } = user;
  return {
    id: id === undefined ? null : toBigInt(id),
    username,
    firstName,
    lastName,
    email,
    phone,
    userStatus: userStatus === undefined ? null : Number(userStatus),
    // An empty password counts as none: the user can't log in.
    password: user.password || null,
  };
}

/** The header `Set-Cookie` for a session that expires after `lifetimeMs`. */
function cookie(token: string, lifetimeMs: number, isHttps: boolean): string {
  const maxAge = `Max-Age=${Math.floor(lifetimeMs / Seconds(1))}`;
  const attributes = [`${COOKIE}=${token}`, `Path=${COOKIE_PATH}`, maxAge, 'HttpOnly', 'SameSite=Strict'];
  return [...attributes, ...(isHttps ? ['Secure'] : [])].join('; ');
}

/** Maximum number of sessions that one logout ends. */
const MAX_SESSIONS_PER_LOGOUT = 4;

/** The sessions that a request names: by header, by cookie, or both. */
function sessionsOf(headers: Call['headers']): string[] {
  const headerToken = headers['x-session'];
  const cookies = String(headers.cookie ?? '').split(';');
  const cookieTokens = cookies.flatMap((pair) => {
    const [name, value] = pair.trim().split('=');
    return name === COOKIE && value !== undefined && value !== '' ? [value] : [];
  });
  const tokens = [...(typeof headerToken === 'string' && headerToken !== '' ? [headerToken] : []), ...cookieTokens];
  return [...new Set(tokens)].slice(0, MAX_SESSIONS_PER_LOGOUT);
}
