/**
 * Finds out who calls the operators' interface: by the token in the data folder (token.ts), which has the role `admin`;
 * by a named token (../../accounts/operator-tokens.ts); or by the cookie of a session of the console, which has the
 * rights of the token that asked for it.
 */
import type { FastifyRequest } from 'fastify';
import type { OperatorTokens } from '../../accounts/operator-tokens.js';
import type { ConsoleSessions } from '../../console/console-sessions.js';
import type { PageGuard } from '../../console/page-guard.js';
import { tokenInCookies } from '../../console/session-cookie.js';
import type { OperatorConsoleSession } from '../../store/contract/operators/console-session-store.js';
import type { OperatorRole } from '../../store/contract/operators/operator-token-store.js';
import { bearerOf, type OperatorToken } from './token.js';

/** Who calls. */
export interface Caller {
  /** The token's name in the audit log: that of a named token, or the start of the hash of the data folder's token. */
  readonly tokenName: string | null;
  readonly role: OperatorRole;
  /** The id of a named token; null for the token in the data folder. */
  readonly tokenId: number | null;
  readonly expiresAtMs: number | null;
  /** The id of the console's session; null for a caller with a token. */
  readonly sessionId: number | null;
}

/** No caller that is known, with the least role: only the page's files and the login are served to it. */
const NOBODY: Caller = { tokenName: null, role: 'metrics', tokenId: null, expiresAtMs: null, sessionId: null };

export class Callers {
  readonly #token: OperatorToken;
  readonly #named: OperatorTokens;
  readonly #callers = new WeakMap<FastifyRequest, Caller>();
  readonly #sessions: ConsoleSessions;
  readonly #guard: PageGuard;

  constructor(token: OperatorToken, named: OperatorTokens, sessions: ConsoleSessions, guard: PageGuard) {
    this.#token = token;
    this.#named = named;
    this.#sessions = sessions;
    this.#guard = guard;
  }

  /**
   * Whether the token that asked for a session is still in use. The store returns no session of a named token that was
   * revoked. The data folder's token has no row there. Its name is the start of its hash, so a new one has another
   * name.
   */
  isTokenInUse({ tokenId, tokenName }: Pick<OperatorConsoleSession, 'tokenId' | 'tokenName'>): boolean {
    return tokenId !== null || tokenName === this.#token.name;
  }

  /** The caller of an authenticated request. */
  of(request: FastifyRequest): Caller {
    return this.#callers.get(request) ?? NOBODY;
  }

  /**
   * Whether the caller of a long request may still make it: whether its session has not ended. Streams that were opened
   * with a token are ended by the server when the token is revoked, replaced or expires.
   */
  async isStillAllowed(request: FastifyRequest): Promise<boolean> {
    return this.of(request).sessionId === null || (await this.#ofSession(request)) !== undefined;
  }

  /**
   * Finds the caller of a request; returns undefined if it has neither a valid token nor a valid session.
   *
   * @throws Refusal 403 if the request has a session's cookie, but was not made by our own page
   */
  async authenticate(request: FastifyRequest): Promise<Caller | undefined> {
    const { authorization } = request.headers;
    const caller = authorization === undefined ? await this.#ofSession(request) : await this.#find(authorization);
    if (caller !== undefined) this.#callers.set(request, caller);
    return caller;
  }

  async #find(authorization: string | undefined): Promise<Caller | undefined> {
    if (this.#token.isOperator(authorization))
      return { tokenName: this.#token.name, role: 'admin', tokenId: null, expiresAtMs: null, sessionId: null };
    const named = await this.#named.check(bearerOf(authorization));
    if (named === undefined) return undefined;
    const { id: tokenId, name: tokenName, role, expiresAtMs } = named;
    return { tokenName, role, tokenId, expiresAtMs, sessionId: null };
  }

  async #ofSession({ headers, raw }: FastifyRequest): Promise<Caller | undefined> {
    const place = { console: 'operator', isHttps: this.#guard.isHttps(raw) } as const;
    const cookie = tokenInCookies(headers.cookie, place);
    if (cookie === undefined) return undefined;
    this.#guard.check(raw);
    const session = await this.#sessions.find(cookie);
    if (session?.kind !== 'operator' || !this.isTokenInUse(session)) return undefined;
    const { id: sessionId, tokenName, role, tokenId, expiresAtMs } = session;
    return { tokenName, role, tokenId, expiresAtMs, sessionId };
  }
}
