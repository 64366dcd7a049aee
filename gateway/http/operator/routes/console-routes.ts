/**
 * The routes with which operators open the console's sessions, list and end them (docs/console.md, "Opening it"). A
 * caller with a token makes a one-time link; the page redeems it for a session, which has the rights of that token.
 * Only our page calls the other routes, so the OpenAPI document has the first one alone.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type Clock, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { Audit } from '../../../audit/audit.js';
import { CONSOLE_SESSION_LIFE, type ConsoleSessions } from '../../../console/console-sessions.js';
import type { PageGuard } from '../../../console/page-guard.js';
import { endedCookie, sessionCookie } from '../../../console/session-cookie.js';
import type { TrustedProxies } from '../../../network/trusted-proxies.js';
import type { ConsoleSession } from '../../../store/contract/operators/console-session-store.js';
import { OPERATOR_ROLES } from '../../../store/contract/operators/operator-token-store.js';
import { Refusal } from '../../merchant/refusal.js';
import { notLoggedIn } from '../../merchant/user-session.js';
import { whoOf } from '../audited.js';
import type { Callers } from '../callers.js';
import type { DocumentedRoute } from '../document.js';
import { checkRole, roleNeeded } from '../roles.js';
import { OneOf, Time } from '../schemas.js';

const LOGIN_PATH = '/console/login';
const MAX_BODY_BYTES = 1024;

/** The route that makes a link, as documented. */
export const LINK_TERMS: DocumentedRoute = {
  method: 'POST',
  path: '/console/links',
  operation: 'console.link',
  summary: 'Makes a one-time link for a session of the console, with the rights of the token that asks.',
  success: 201,
  answer: Type.Object({
    token: Type.String({ description: 'The link is the address of this port with `/#` and this token.' }),
    role: OneOf(OPERATOR_ROLES),
    expires_at: Time,
  }),
};

/** Whether a path is open to callers who are not authenticated: the login, whose credential is the link. */
export function isConsoleLogin(path: string | undefined): boolean {
  return path === LOGIN_PATH;
}

export interface ConsoleRouteParts {
  readonly callers: Callers;
  readonly sessions: ConsoleSessions;
  readonly guard: PageGuard;
  readonly audit: Audit;
  readonly proxies: TrustedProxies;
  /** The run's clock, which a demonstration lets run faster than the wall clock. */
  readonly clock: Clock;
  /** Closes the streams of the sessions that have ended. */
  readonly endStreams: (hasEnded: (sessionId: number) => boolean) => void;
}

/** Adds the routes. */
export function addConsoleRoutes(fastify: FastifyInstance, parts: ConsoleRouteParts): void {
  const { callers, sessions } = parts;
  fastify.post(LINK_TERMS.path, (request, reply) => makeLink(parts, request, reply));
  fastify.post(LOGIN_PATH, { bodyLimit: MAX_BODY_BYTES }, (request, reply) => logIn(parts, request, reply));
  fastify.post('/console/logout', async (request, reply) => {
    const id = sessionIdOf(parts, request);
    await endSession(parts, id);
    const isHttps = parts.guard.isHttps(request.raw);
    return await reply
      .status(204)
      .header('set-cookie', endedCookie({ console: 'operator', isHttps }))
      .send();
  });
  fastify.get('/console/session', async (request) => {
    const id = sessionIdOf(parts, request);
    const session = (await sessions.list('operators')).find((each) => each.id === id);
    if (session === undefined) throw notLoggedIn();
    return { session: sessionJson(session, id), now: formatDate(parts.clock.now()) };
  });
  fastify.get('/console/sessions', async (request) => {
    const id = sessionIdOf(parts, request);
    const isAdmin = callers.of(request).role === 'admin';
    const reached = (await sessions.list('operators')).filter((each) => isAdmin || each.id === id);
    return { data: reached.map((each) => sessionJson(each, id)) };
  });
  fastify.delete('/console/sessions/:id', async (request, reply) => {
    const ownId = sessionIdOf(parts, request);
    const text = (request.params as { readonly id: string }).id;
    const id = Number(/^\d{1,15}$/.exec(text)?.[0] ?? 0);
    const { role, tokenName } = callers.of(request);
    const isReached = role === 'admin' || id === ownId;
    if (!isReached || !(await endSession(parts, id)))
      throw new LockgateError('no-such-session', 'there is no such session');
    parts.audit.note('session.end', String(id), null, whoOf(request, parts.proxies, tokenName));
    return await reply.status(204).send();
  });
}

async function makeLink(parts: ConsoleRouteParts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { callers, sessions, audit, proxies } = parts;
  const { tokenName, role, tokenId, expiresAtMs, sessionId } = callers.of(request);
  const change = { who: whoOf(request, proxies, tokenName), action: LINK_TERMS.operation, object: '', before: null };
  const link = await audit.change(
    change,
    async () => {
      checkRole(role, roleNeeded(LINK_TERMS));
      // Otherwise a session could outlive its 12 hours by links of its own.
      if (sessionId !== null) throw new LockgateError('insufficient-role', 'a link needs a token, not a session');
      // An authenticated caller has a token, which has a name.
      return await sessions.makeLink({ role, tokenName: tokenName ?? '', tokenId, sessionEndsAtMs: expiresAtMs });
    },
    () => ({ object: '', after: { role } }),
  );
  return await reply.status(201).send({ token: link.token, role, expires_at: formatDate(link.expiresAtMs) });
}

async function logIn(parts: ConsoleRouteParts, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { callers, sessions, guard, audit, proxies } = parts;
  guard.check(request.raw);
  const link = (request.body as { readonly token?: unknown } | null)?.token;
  const client = { address: proxies.clientOf(request.raw), agent: request.headers['user-agent'] };
  const opened = typeof link === 'string' ? await sessions.redeemLink(link, client) : undefined;
  if (opened === undefined || !callers.isTokenInUse(opened.session)) {
    const detail = 'the link is unknown, was used already, or is older than 5 minutes: ask for a new one';
    throw new Refusal({ status: 401, code: 'wrong-link', detail });
  }
  const { token, session } = opened;
  await endOldestStreams(parts);
  const place = { console: 'operator', isHttps: guard.isHttps(request.raw) } as const;
  audit.note('session.open', session.tokenName, { role: session.role }, whoOf(request, proxies, session.tokenName));
  const maxAgeSeconds = Math.floor(
    Math.min(CONSOLE_SESSION_LIFE, session.expiresAtMs - session.createdAtMs) / Seconds(1),
  );
  reply.header('set-cookie', sessionCookie(token, maxAgeSeconds, place));
  return await reply.send({ session: sessionJson(session, session.id) });
}

async function endSession({ sessions, endStreams }: ConsoleRouteParts, id: number): Promise<boolean> {
  const isEnded = await sessions.end(id, 'operators');
  if (isEnded) endStreams((each) => each === id);
  return isEnded;
}

/** Closes the streams of the session that ended because one more than the maximum was opened. */
async function endOldestStreams({ sessions, endStreams }: ConsoleRouteParts): Promise<void> {
  const valid = new Set((await sessions.list('operators')).map(({ id }) => id));
  endStreams((each) => !valid.has(each));
}

/** The id of the caller's session. @throws Refusal 401 for a caller with a token instead */
function sessionIdOf({ callers }: ConsoleRouteParts, request: FastifyRequest): number {
  const { sessionId } = callers.of(request);
  if (sessionId === null) throw notLoggedIn();
  return sessionId;
}

/** @param currentId the id of the caller's session */
function sessionJson(session: ConsoleSession, currentId: number) {
  const { id, role, address, agent, createdAtMs, expiresAtMs } = session;
  const token = session.kind === 'operator' ? session.tokenName : null;
  const times = { created_at: formatDate(createdAtMs), expires_at: formatDate(expiresAtMs) };
  return { id, token, role, ...times, address, agent, current: id === currentId };
}
