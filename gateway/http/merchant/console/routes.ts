/**
 * The dashboard's own routes: login and logout, sessions, the user's own password, and those of key-routes.ts
 * (docs/console.md). Only our page calls them, so the OpenAPI document leaves them out. Everything else the dashboard
 * does with `/v1/…`.
 */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../../../proto/clock.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { CONSOLE_SESSION_LIFE } from '../../../console/console-sessions.js';
import { endedCookie, sessionCookie } from '../../../console/session-cookie.js';
import { OverBudget } from '../../../fairness/over-budget.js';
import type {
  ConsoleSession,
  SessionOwner,
  UserConsoleSession,
} from '../../../store/contract/operators/console-session-store.js';
import { userWho } from '../audited.js';
import { Refusal } from '../refusal.js';
import type { Call, HttpAnswer, MerchantRoute } from '../route.js';
import { consoleRoute, IdParam, json, MAX_NAME_CHARS, noSuch, sessionOf } from './console-route.js';
import { CONSOLE_KEY_ROUTES } from './key-routes.js';

const MAX_PASSWORD_CHARS = 512;

const LoginBody = Type.Object({
  merchant: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }),
  username: Type.String({ minLength: 1, maxLength: MAX_NAME_CHARS }),
  password: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }),
});

const NewPasswordBody = Type.Object({
  present: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }),
  password: Type.String({ minLength: 1, maxLength: MAX_PASSWORD_CHARS }),
});

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
        now: formatDate(call.parts.ownData.runClock.now()),
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
      // No session has the id 0.
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
  ...CONSOLE_KEY_ROUTES,
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

/** The sessions that a user may see and end. */
function reachOf({ merchantId, userId, role }: UserConsoleSession): SessionOwner {
  return role === 'owner' ? { merchantId } : { merchantId, userId };
}

/** @param currentId the id of the caller's session */
function sessionJson(session: ConsoleSession, currentId: number) {
  const { id, createdAtMs, expiresAtMs, address, agent, role } = session;
  const times = { created_at: formatDate(createdAtMs), expires_at: formatDate(expiresAtMs) };
  const holder =
    session.kind === 'user'
      ? { merchant: session.merchantName, username: session.username }
      : { merchant: null, username: session.tokenName };
  return { id, ...holder, role, ...times, address, agent, current: id === currentId };
}
