/**
 * The dashboard's own routes: login and logout, sessions, API keys (interfaces.md §2, Users of the dashboard). Only our
 * page calls them, so the OpenAPI document leaves them out. Everything else the dashboard does with `/v1/…`.
 */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../../proto/clock.js';
import { parseDate } from '../../../proto/date.js';
import { toDate } from '../../../proto/wire/ping-json.js';
import type { ApiKeys } from '../../accounts/api-keys.js';
import { CONSOLE_SESSION_LIFE } from '../../console/console-sessions.js';
import { endedCookie, sessionCookie } from '../../console/session-cookie.js';
import { OverBudget } from '../../fairness/over-budget.js';
import type { ApiKey } from '../../store/contract/merchants/access-store.js';
import type {
  ConsoleSession,
  SessionOwner,
  UserConsoleSession,
} from '../../store/contract/operators/console-session-store.js';
import { userWho } from './audited.js';
import { inputRefusal, Refusal } from './refusal.js';
import type { Call, HttpAnswer, MerchantRoute } from './route.js';
import { notLoggedIn } from './user-session.js';

const MAX_BODY_BYTES = 4 * 1024;
const MAX_NAME_CHARS = 256;
const MAX_PASSWORD_CHARS = 512;
const MAX_SCOPES = 20;
const MAX_DATE_CHARS = 40;

type Terms = Pick<MerchantRoute, 'method' | 'path' | 'operationId' | 'summary' | 'handle'> & Partial<MerchantRoute>;

/** A route with what all of them have in common. Answers are not serialised by a schema. */
function consoleRoute(terms: Terms): MerchantRoute {
  const hasBody = terms.body !== undefined && { bodyBytes: MAX_BODY_BYTES };
  return { scheme: 'session', scope: 'users', tag: 'users', responses: {}, isHidden: true, ...hasBody, ...terms };
}

const LoginBody = Type.Object({
  merchant: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }),
  username: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }),
  password: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }),
});

const NewKeyBody = Type.Object({
  name: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }),
  scopes: Type.Optional(Type.Array(Type.String(), { maxItems: MAX_SCOPES })),
  expires_at: Type.Optional(Type.String({ maxLength: MAX_DATE_CHARS })),
});

const NewPasswordBody = Type.Object({
  present: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }),
  password: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }),
});

const IdParam = Type.Object({ id: Type.String() });

/** The routes of the dashboard. */
export const CONSOLE_ROUTES: readonly MerchantRoute[] = [
  consoleRoute({
    method: 'POST',
    path: '/console/login',
    operationId: 'consoleLogin',
    summary: 'Opens a session.',
    scheme: 'none',
    isLogin: true,
    body: LoginBody,
    handle: logIn,
  }),
  consoleRoute({
    method: 'POST',
    path: '/console/logout',
    operationId: 'consoleLogout',
    summary: 'Ends the session.',
    handle: async (call) => {
      const { id, merchantId } = sessionOf(call);
      await call.parts.consoleSessions.end(id, { merchantId });
      const cookie = endedCookie({ console: 'merchant', isHttps: call.isHttps });
      return { status: 204, headers: { 'set-cookie': cookie } };
    },
  }),
  consoleRoute({
    method: 'GET',
    path: '/console/session',
    operationId: 'consoleSession',
    summary: 'Who is logged in, and the time of locks.',
    handle: async (call) =>
      json({
        session: sessionJson(sessionOf(call), sessionOf(call).id),
        // The run's clock, which a demonstration lets run faster than the wall clock.
        now: toDate(call.parts.ownData.runClock.now()),
      }),
  }),
  consoleRoute({
    method: 'GET',
    path: '/console/sessions',
    operationId: 'consoleSessions',
    summary: 'Open sessions: one’s own, and for owners those of all users.',
    handle: async (call) => {
      const sessions = await call.parts.consoleSessions.list(reachOf(sessionOf(call)));
      return json({ data: sessions.map((each) => sessionJson(each, sessionOf(call).id)) });
    },
  }),
  consoleRoute({
    method: 'DELETE',
    path: '/console/sessions/{id}',
    operationId: 'endConsoleSession',
    summary: 'Ends a session.',
    params: IdParam,
    handle: async (call) => {
      const id = Number(/^\d{1,15}$/.exec(call.params.id ?? '')?.[0] ?? 0);
      if (!(await call.parts.consoleSessions.end(id, reachOf(sessionOf(call))))) throw noSuch('session');
      return { status: 204 };
    },
    audit: ({ params }) => ({ action: 'session.end', object: params.id ?? '', after: null }),
  }),
  consoleRoute({
    method: 'POST',
    path: '/console/password',
    operationId: 'changeConsolePassword',
    summary: 'Changes one’s own password, and ends one’s other sessions.',
    body: NewPasswordBody,
    handle: changePassword,
    audit: (call) => ({ action: 'user.password', object: String(sessionOf(call).userId), after: null }),
  }),
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
    method: 'POST',
    path: '/console/keys/{id}/revoke',
    operationId: 'revokeConsoleKey',
    summary: 'Revokes an API key and its tokens.',
    roles: ['owner'],
    params: IdParam,
    handle: async (call) => {
      const { apiKeys, store } = call.parts;
      const key = await store.access.findKey(call.params.id ?? '');
      if (key === null || key.merchantId !== call.merchantId) throw noSuch('key');
      return json(keyJson(apiKeys, await apiKeys.revoke(key.publicId)));
    },
    audit: ({ params }) => ({ action: 'key.revoke', object: params.id ?? '', after: null }),
  }),
];

async function logIn(call: Call): Promise<HttpAnswer> {
  const { parts, body, address, isHttps } = call;
  const outcome = await parts.consoleSessions.logIn({
    ...(body as Static<typeof LoginBody>),
    address,
    agent: agentOf(call),
  });
  if (outcome.result === 'retry-later') throw tooManyGuesses(outcome.retryAfterMs);
  if (outcome.result === 'refused') {
    const detail = 'the merchant, the user or the password is wrong';
    throw new Refusal({ status: 401, code: 'wrong-login', detail });
  }
  if (outcome.result !== 'logged-in') {
    const detail = 'this user has no role on the dashboard: an owner or the operator can give it one';
    throw new Refusal({ status: 403, code: 'no-role', detail });
  }
  const { token, session } = outcome;
  const maxAgeSeconds = CONSOLE_SESSION_LIFE / Seconds(1);
  const cookie = sessionCookie(token, maxAgeSeconds, { console: 'merchant', isHttps });
  const who = userWho(session, { address, agent: agentOf(call) ?? null });
  parts.audit.note('session.open', session.username, null, who);
  return { ...json({ session: sessionJson(session, session.id) }), headers: { 'set-cookie': cookie } };
}

/** The present password is asked for, so that a page that is left open gives nobody the account. */
async function changePassword(call: Call): Promise<HttpAnswer> {
  const { parts, body, address, signal } = call;
  const { id, merchantId, userId, username } = sessionOf(call);
  const { present, password } = body as Static<typeof NewPasswordBody>;
  const outcome = await parts.users.checkPassword({ merchantId, username, password: present, address });
  if (outcome.result === 'retry-later') throw tooManyGuesses(outcome.retryAfterMs);
  if (outcome.result !== 'right' || outcome.userId !== userId)
    throw new Refusal({ status: 403, code: 'wrong-password', detail: 'the present password is wrong' });
  await parts.users.change(merchantId, userId, { password, keptSessionId: id }, signal);
  return { status: 204 };
}

function tooManyGuesses(retryAfterMs: number): OverBudget {
  return OverBudget.rate('login-guesses', 'too many wrong passwords: try again later', retryAfterMs);
}

function agentOf({ headers }: Call): string | undefined {
  const agent = headers['user-agent'];
  return typeof agent === 'string' ? agent : undefined;
}

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

function sessionOf({ session }: Call): UserConsoleSession {
  if (session === undefined) throw notLoggedIn();
  return session;
}

/** The sessions that a user may see and end. */
function reachOf({ merchantId, userId, role }: UserConsoleSession): SessionOwner {
  return role === 'owner' ? { merchantId } : { merchantId, userId };
}

function json(body: unknown): HttpAnswer {
  return { status: 200, body };
}

function noSuch(what: 'session' | 'key'): Refusal {
  return new Refusal({ status: 404, code: `no-such-${what}`, detail: `there is no such ${what}` });
}

/** @param currentId the id of the caller's session */
function sessionJson(session: ConsoleSession, currentId: number) {
  const { id, createdAtMs, expiresAtMs, address, agent, role } = session;
  const times = { created_at: toDate(createdAtMs), expires_at: toDate(expiresAtMs) };
  const holder =
    session.kind === 'user'
      ? { merchant: session.merchantName, username: session.username }
      : { merchant: null, username: session.tokenName };
  return { id, ...holder, role, ...times, address, agent, current: id === currentId };
}

function keyJson(apiKeys: ApiKeys, key: ApiKey) {
  const { publicId, name, createdAtMs, lastUsedAtMs, expiresAtMs, scopes } = key;
  const dates = {
    created_at: toDate(createdAtMs),
    last_used_at: lastUsedAtMs === null ? null : toDate(lastUsedAtMs),
    expires_at: expiresAtMs === null ? null : toDate(expiresAtMs),
  };
  return { id: publicId, name, state: apiKeys.stateOf(key), ...dates, scopes: [...scopes] };
}
