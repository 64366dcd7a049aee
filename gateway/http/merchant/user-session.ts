/** Authenticates users of the dashboard by the cookie of their session (docs/console.md, "Opening it"). */
import type { FastifyRequest } from 'fastify';
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import type { PageGuard } from '../../console/page-guard.js';
import { roleHasScope } from '../../console/role-scopes.js';
import { tokenInCookies } from '../../console/session-cookie.js';
import type { UserConsoleSession } from '../../store/contract/operators/console-session-store.js';
import { Refusal } from './refusal.js';
import type { MerchantRoute } from './route.js';

/**
 * The session of the user who makes a request; undefined if the request has no cookie, or one of a session that ended.
 *
 * @throws Refusal 403 if the request has a session's cookie, but was not made by our own page
 */
export async function findUserSession(
  parts: Pick<MerchantParts, 'consoleSessions'>,
  guard: PageGuard,
  request: Pick<FastifyRequest, 'headers' | 'raw'>,
): Promise<UserConsoleSession | undefined> {
  const place = { console: 'merchant', isHttps: guard.isHttps(request.raw) } as const;
  const token = tokenInCookies(request.headers.cookie, place);
  if (token === undefined) return undefined;
  guard.check(request.raw);
  const session = await parts.consoleSessions.find(token);
  return session?.kind === 'user' ? session : undefined;
}

/** Whether a user may call a route: by the route's roles, or by the scope that an API key would need. */
export function mayCall({ role }: UserConsoleSession, { scheme, keyScope, roles }: MerchantRoute): boolean {
  return scheme === 'session' ? (roles?.includes(role) ?? true) : roleHasScope(role, keyScope);
}

/** @throws Refusal 403 `insufficient-role` */
export function checkSessionRights(session: UserConsoleSession, route: MerchantRoute): void {
  if (mayCall(session, route)) return;
  const detail = `the role ${session.role} does not allow this`;
  throw new Refusal({ status: 403, code: 'insufficient-role', detail });
}

/** The refusal of a call of our page without a valid session. No WWW-Authenticate: the browser would open a dialog. */
export function notLoggedIn(): Refusal {
  return new Refusal({ status: 401, code: 'not-logged-in', detail: 'log in first: there is no valid session' });
}
