/** The user group: operations 3 to 6 (specification; interfaces.md §2). */
import { type Static, Type } from 'typebox';
import { Hours, Seconds } from '../../../proto/clock.js';
import { toDate } from '../../../proto/wire/ping-json.js';
import { GUESS_WINDOW, GUESSES, GUESSES_OF_STRANGERS } from '../../accounts/login-guard.js';
import { SESSION_LIFE, type TypedUser } from '../../accounts/users.js';
import type { Fairness } from '../../fairness/fairness-settings.js';
import { OverBudget } from '../../fairness/over-budget.js';
import { BODY_BYTES } from '../shared/limits.js';
import { toBigInt } from './check-value.js';
import { MOST_LONG_NUMBERS, MOST_VALUES } from './json-body.js';
import { Int64, shortText } from './pet-routes.js';
import { Refusal } from './refusal.js';
import {
  type Call,
  type MerchantRoute,
  problemResponse,
  tooLarge,
  tooMany,
  UNAUTHORIZED,
  UNAVAILABLE,
  WRONG_TYPE,
} from './route.js';

const MOST = [MOST_VALUES, MOST_LONG_NUMBERS].map((most) => most.toLocaleString('en')).join(' values, ');

/** Users of one call (interfaces.md §2). */
export const MOST_USERS = 1_000;
/** The longest password, in characters: spelled with percent signs it still fits the line of a login. */
const MAX_PASSWORD = 512;

const COOKIE = 'lockgate_session';
/** It goes to the operations on users alone. */
const COOKIE_PATH = '/v2/user';
const SESSION_PREFIX = 'logged in user session:';

/** The login's limit as calls an hour, which is what its header counts. */
const GUESSES_AN_HOUR = (GUESSES * Hours(1)) / GUESS_WINDOW;

const TOO_MANY_GUESSES = `Over ${GUESSES} wrong guesses in 5 minutes at this account from this address, or over
${GUESSES_OF_STRANGERS} at the account, or from the address at all accounts.`.replaceAll('\n', ' ');

const UserStatus = Type.Unsafe<number>({ type: 'integer', format: 'int32', description: 'User Status' });

function userListOf(most: number) {
  const username = 'Each at most once, whatever its case, the spaces around it and its spelling in Unicode (NFKC).';
  return Type.Array(
    Type.Object(
      {
        id: Type.Optional(Int64({ description: 'Any id that is free; where it is left out, we give the next one.' })),
        username: Type.Optional(shortText(most, { description: username })),
        firstName: Type.Optional(shortText(most)),
        lastName: Type.Optional(shortText(most)),
        email: Type.Optional(shortText(most)),
        password: Type.Optional(
          shortText(MAX_PASSWORD, { description: 'Kept hashed (argon2id). Without one there is no login.' }),
        ),
        phone: Type.Optional(shortText(most)),
        userStatus: Type.Optional(UserStatus),
      },
      { title: 'User' },
    ),
  );
}

type UserList = Static<ReturnType<typeof userListOf>>;

const Credentials = Type.Object({
  username: Type.String({ description: 'The user name for login.' }),
  password: Type.String({ maxLength: MAX_PASSWORD, description: 'The password for login in clear text.' }),
});

const logIn: MerchantRoute = {
  method: 'GET',
  path: '/v2/user/login',
  operationId: 'loginUser',
  tag: 'users',
  summary: 'Logs a user in.',
  scheme: 'api-key',
  query: Credentials,
  responses: {
    200: {
      description: 'The session, which is in the cookie too.',
      schema: Type.String(),
      example: `${SESSION_PREFIX}lgu_…`,
      headers: {
        'x-rate-limit': { description: 'Wrong guesses an hour that an account bears of an address.', type: 'integer' },
        'x-expires-after': { description: 'When the session ends (RFC 3339).', type: 'string' },
        'set-cookie': { description: `${COOKIE}, for ${COOKIE_PATH}.`, type: 'string' },
      },
    },
    400: problemResponse('Invalid username/password supplied.'),
    401: UNAUTHORIZED,
    429: tooMany(`${TOO_MANY_GUESSES} Or: `),
    503: UNAVAILABLE,
  },
  refuse: (faults) => wrongCredentials(faults),
  handle: async ({ parts, merchantId, query, address, isHttps }) => {
    const { username, password } = query as Static<typeof Credentials>;
    const outcome = await parts.users.logIn({ merchantId, username, password, address });
    if (outcome.became === 'refused') throw wrongCredentials();
    if (outcome.became === 'later')
      throw OverBudget.rate(
        'login-guesses',
        'too many wrong guesses at this account, or from this address; wait before the next one',
        outcome.retryAfterMs,
      );
    return {
      status: 200,
      headers: {
        'x-rate-limit': String(GUESSES_AN_HOUR),
        'x-expires-after': toDate(outcome.expiresAtMs),
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
  headers: Type.Object({
    'x-session': Type.Optional(Type.String({ description: 'The session, for clients without cookies.' })),
  }),
  responses: {
    200: { description: 'Successful operation, also where there was no session.' },
    401: UNAUTHORIZED,
    429: tooMany(),
    503: UNAVAILABLE,
  },
  handle: async ({ parts, merchantId, headers, isHttps }) => {
    for (const token of sessionsOf(headers)) await parts.users.logOut(merchantId, token);
    return { status: 200, headers: { 'set-cookie': cookie('', 0, isHttps) } };
  },
};

const creating = ({ nameLength }: Fairness) =>
  ({
    method: 'POST',
    tag: 'users',
    scheme: 'api-key',
    body: userListOf(nameLength),
    bodyBytes: BODY_BYTES,
    bodyExample: [{ id: 7, username: 'ada', firstName: 'Ada', password: 'correct horse', userStatus: 1 }],
    mostItems: MOST_USERS,
    // Clients made of the public Petstore document send it so: it names no type for these two.
    takesPlainText: true,
    responses: {
      200: { description: 'Successful operation: all of them are added.' },
      400: problemResponse('Not an array of user objects, or a wrong member; the index and member are named.'),
      401: UNAUTHORIZED,
      409: problemResponse('A user name or an id stands twice in the list or is taken; no user was added.'),
      413: tooLarge(BODY_BYTES, `, or has over ${MOST} long numbers or ${MOST_USERS} users`),
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
    ...creating(fairness),
    path: '/v2/user/createWithList',
    operationId: 'createUsersWithListInput',
    summary: 'Creates users from a list: all or none.',
  },
  {
    ...creating(fairness),
    path: '/v2/user/createWithArray',
    operationId: 'createUsersWithArrayInput',
    summary: 'Creates users from an array: all or none. The same as createWithList.',
  },
];

/** One sentence for either, so that nobody learns which it was. */
function wrongCredentials(faults?: ConstructorParameters<typeof Refusal>[0]['faults']): Refusal {
  const detail = 'Invalid username/password supplied';
  return new Refusal({ status: 400, code: 'wrong-credentials', detail, faults });
}

function toUser(user: UserList[number]): TypedUser {
  const { id, username = null, firstName = null, lastName = null, email = null, phone = null, userStatus } = user;
  return {
    id: id === undefined ? null : toBigInt(id),
    username,
    firstName,
    lastName,
    email,
    phone,
    userStatus: userStatus === undefined ? null : Number(userStatus),
    // An empty one protects nothing: whoever has none can't log in.
    password: user.password || null,
  };
}

function cookie(token: string, life: number, isHttps: boolean): string {
  const age = `Max-Age=${Math.floor(life / Seconds(1))}`;
  const terms = [`${COOKIE}=${token}`, `Path=${COOKIE_PATH}`, age, 'HttpOnly', 'SameSite=Strict'];
  return [...terms, ...(isHttps ? ['Secure'] : [])].join('; ');
}

/** The sessions that a request names: by header, by cookie, or both. */
function sessionsOf(headers: Call['headers']): string[] {
  const named = headers['x-session'];
  const cookies = String(headers.cookie ?? '').split(';');
  const ours = cookies.flatMap((pair) => {
    const [name, value] = pair.trim().split('=');
    return name === COOKIE && value !== undefined && value !== '' ? [value] : [];
  });
  const first = [...(typeof named === 'string' && named !== '' ? [named] : []), ...ours];
  return [...new Set(first)].slice(0, 4);
}
