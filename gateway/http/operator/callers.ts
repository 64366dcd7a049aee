/**
 * Finds out who calls the operators' interface: by the token in the data folder (token.ts), the first admin, or by a
 * named token (../../accounts/operator-tokens.ts).
 */
import type { FastifyRequest } from 'fastify';
import type { OperatorTokens } from '../../accounts/operator-tokens.js';
import type { OperatorRole } from '../../store/contract/operator-token-store.js';
import { bearerOf, type OperatorToken } from './token.js';

/** Who calls. */
export interface Caller {
  /** The token for the audit log: a named token's name, or the start of the hash of the data folder's token. */
  readonly token: string | null;
  readonly role: OperatorRole;
  /** The id of a named token; null for the token in the data folder. */
  readonly tokenId: number | null;
  readonly expiresAtMs: number | null;
}

/** A caller before it is known, who may do nothing. */
const NOBODY: Caller = { token: null, role: 'metrics', tokenId: null, expiresAtMs: null };

export class Callers {
  readonly #token: OperatorToken;
  readonly #named: OperatorTokens;
  readonly #callers = new WeakMap<FastifyRequest, Caller>();

  constructor(token: OperatorToken, named: OperatorTokens) {
    this.#token = token;
    this.#named = named;
  }

  /** The caller of an authenticated request. */
  of(request: FastifyRequest): Caller {
    return this.#callers.get(request) ?? NOBODY;
  }

  /** Finds the caller of a request; returns undefined if it has no valid token. */
  async authenticate(request: FastifyRequest): Promise<Caller | undefined> {
    const caller = await this.#find(request.headers.authorization);
    if (caller !== undefined) this.#callers.set(request, caller);
    return caller;
  }

  async #find(authorization: string | undefined): Promise<Caller | undefined> {
    if (this.#token.isOperator(authorization))
      return { token: this.#token.name, role: 'admin', tokenId: null, expiresAtMs: null };
    const named = await this.#named.check(bearerOf(authorization));
    if (named === undefined) return undefined;
    return { token: named.name, role: named.role, tokenId: named.id, expiresAtMs: named.expiresAtMs };
  }
}
