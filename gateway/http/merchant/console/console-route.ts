/** What the routes of the dashboard's own login, sessions and keys have in common. */
import { Type } from 'typebox';
import type { UserConsoleSession } from '../../../store/contract/operators/console-session-store.js';
import { Refusal } from '../refusal.js';
import type { Call, HttpAnswer, MerchantRoute } from '../route.js';
import { notLoggedIn } from '../user-session.js';

const MAX_BODY_BYTES = 4 * 1024;
/** The maximum length of a name in a body. */
export const MAX_NAME_CHARS = 256;

type Terms = Pick<MerchantRoute, 'method' | 'path' | 'operationId' | 'summary' | 'handle'> & Partial<MerchantRoute>;

/** A route with what all of them have in common. Answers are not serialised by a schema. */
export function consoleRoute(terms: Terms): MerchantRoute {
  const hasBody = terms.body !== undefined && { bodyBytes: MAX_BODY_BYTES };
  return { scheme: 'session', keyScope: 'users', tag: 'users', responses: {}, isHidden: true, ...hasBody, ...terms };
}

/** The parameter of a path that names a session or a key. */
export const IdParam = Type.Object({ id: Type.String() });

/** The session of the call. @throws Refusal 401 */
export function sessionOf({ session }: Call): UserConsoleSession {
  if (session === undefined) throw notLoggedIn();
  return session;
}

/** An answer 200. */
export function json(body: unknown): HttpAnswer {
  return { status: 200, body };
}

/** A refusal 404. */
export function noSuch(what: 'session' | 'key'): Refusal {
  return new Refusal({ status: 404, code: `no-such-${what}`, detail: `there is no such ${what}` });
}
