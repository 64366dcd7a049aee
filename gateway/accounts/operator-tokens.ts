/**
 * Operators' named tokens (interfaces.md §4): each has a name, a role and perhaps an expiry, and is shown once. The
 * store has only its hash: a token is 32 random bytes, so a fast hash is enough. The hash needs no key of the store, so
 * that tokens stay valid when the store's key is replaced. The token in the data folder is not one of these
 * (http/operator/token.ts).
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Clock, type Milliseconds, Minutes } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { faultAt } from '../faults.js';
import type {
  OperatorRole,
  OperatorTokenRecord,
  OperatorTokenStore,
} from '../store/contract/operators/operator-token-store.js';

const TOKEN_BYTES = 32;
/** 32 bytes have 43 characters in base64url. */
const TOKEN_TEXT = /^lgo_[A-Za-z0-9_-]{43}$/;
const MAX_NAME_CHARS = 60;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
/** The form of the name that the data folder's token has in the audit log; a named token must not look like it. */
const HASH_PREFIX = /^[0-9a-f]{8}$/;
/** How old a token's stored last use may be: a write for each call would cost more than the call. */
const LAST_USE_WRITE_INTERVAL: Milliseconds = Minutes(1);

/** The states of a token. */
export const OPERATOR_TOKEN_STATES = ['active', 'expired', 'revoked'] as const;

export type OperatorTokenState = (typeof OPERATOR_TOKEN_STATES)[number];

export interface OperatorTokensParts {
  readonly store: { readonly operatorTokens: OperatorTokenStore };
  /** Wall-clock time. */
  readonly clock: Clock;
}

export class OperatorTokens {
  readonly #parts: OperatorTokensParts;
  /** When each token's last use was written, ms since the epoch, by id. At most as many as there are tokens. */
  readonly #lastUseWrittenAtMs = new Map<number, number>();
  #onRevoked: ((id: number) => void) | undefined;

  constructor(parts: OperatorTokensParts) {
    this.#parts = parts;
  }

  /** Sets the function to call with a token's id after the token was revoked. */
  onRevoked(listener: (id: number) => void): void {
    this.#onRevoked = listener;
  }

  /**
   * Makes a token. `text`, the token itself, is returned here and never again.
   *
   * @throws LockgateError `input-name`, `input-expiry`, `token-exists`, `too-many-tokens`
   */
  async create(
    name: string,
    role: OperatorRole,
    expiresAtMs: number | null = null,
  ): Promise<{ readonly token: OperatorTokenRecord; readonly text: string }> {
    if (!NAME.test(name) || name.length > MAX_NAME_CHARS || HASH_PREFIX.test(name))
      throw new LockgateError(
        'input-name',
        `a token's name has 1 to ${MAX_NAME_CHARS} letters, digits and . _ -, and is not 8 hex digits`,
      );
    const nowMs = this.#parts.clock.now();
    if (expiresAtMs !== null && expiresAtMs <= nowMs)
      throw faultAt('input-expiry', '/expires_at', 'a token must expire in the future, or never');
    const text = `lgo_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
    const row = { name, role, tokenHash: hashOf(text), expiresAtMs, nowMs };
    return { token: await this.#parts.store.operatorTokens.add(row), text };
  }

  /** All tokens, oldest first. */
  async list(): Promise<OperatorTokenRecord[]> {
    return await this.#parts.store.operatorTokens.list();
  }

  /** Revokes a token, at once. @throws LockgateError `no-such-token` */
  async revoke(name: string): Promise<OperatorTokenRecord> {
    const { store, clock } = this.#parts;
    const revoked = await store.operatorTokens.revoke(name, clock.now());
    this.#lastUseWrittenAtMs.delete(revoked.id);
    this.#onRevoked?.(revoked.id);
    return revoked;
  }

  /** The state of a token now. */
  stateOf({ revokedAtMs, expiresAtMs }: OperatorTokenRecord): OperatorTokenState {
    if (revokedAtMs !== null) return 'revoked';
    return expiresAtMs !== null && expiresAtMs <= this.#parts.clock.now() ? 'expired' : 'active';
  }

  /** The valid token with this text; undefined if there is none. */
  async check(text: string): Promise<OperatorTokenRecord | undefined> {
    if (!TOKEN_TEXT.test(text)) return undefined;
    const { store, clock } = this.#parts;
    const token = await store.operatorTokens.find(hashOf(text));
    if (token === null || this.stateOf(token) !== 'active') return undefined;
    this.#noteUse(token, clock.now());
    return token;
  }

  /** Writes the token's last use. The call does not wait for the write, and succeeds even if the write fails. */
  #noteUse({ id, lastUsedAtMs }: OperatorTokenRecord, nowMs: number): void {
    const writtenAtMs = this.#lastUseWrittenAtMs.get(id) ?? lastUsedAtMs;
    // After the clock was set back, the stored use is in the future, and is written again.
    if (writtenAtMs !== null && nowMs - writtenAtMs < LAST_USE_WRITE_INTERVAL && nowMs >= writtenAtMs) return;
    this.#lastUseWrittenAtMs.set(id, nowMs);
    this.#parts.store.operatorTokens.recordUse(id, nowMs).catch(() => this.#lastUseWrittenAtMs.delete(id));
  }
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
