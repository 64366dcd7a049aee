/**
 * Issues and checks access tokens, which merchants send as bearer tokens (interfaces.md §2). A token is opaque, and
 * valid for one hour, or until its API key expires if that is earlier. It is stored and looked up by a keyed hash, so
 * the time of a lookup reveals nothing about stored tokens.
 */
import { randomBytes } from 'node:crypto';
import { type Clock, Hours, type Milliseconds } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { AccessToken, ApiKey, Scope } from '../store/contract/merchants/access-store.js';
import type { Store } from '../store/contract/store.js';

/** How long a token is valid. */
export const TOKEN_LIFE: Milliseconds = Hours(1);

const PREFIX = 'lgt_';
const TOKEN_BYTES = 32;

export interface AccessTokensParts {
  readonly store: Store;
  readonly keys: Keys;
  /** Wall-clock time. */
  readonly clock: Clock;
}

/** A new token, and how long it is valid, ms. */
export interface IssuedToken {
  readonly token: string;
  readonly life: Milliseconds;
}

export class AccessTokens {
  readonly #parts: AccessTokensParts;

  constructor(parts: AccessTokensParts) {
    this.#parts = parts;
  }

  /** Issues a token for an API key. It ends with the key: when the key expires, is revoked, or after an hour. */
  async issue(key: Pick<ApiKey, 'id' | 'expiresAtMs'>, scopes: readonly Scope[]): Promise<IssuedToken> {
    const { store, keys, clock } = this.#parts;
    const token = PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
    const nowMs = clock.now();
    const tokenHash = keys.hashSecret(token);
    const expiresAtMs = Math.min(nowMs + TOKEN_LIFE, key.expiresAtMs ?? Number.POSITIVE_INFINITY);
    await store.access.addToken({ keyId: key.id, tokenHash, scopes, nowMs, expiresAtMs });
    // A key that was checked a moment ago may expire now.
    return { token, life: Math.max(0, expiresAtMs - nowMs) };
  }

  /** @returns the stored token, or null if it is unknown, expired or revoked */
  async check(token: string): Promise<AccessToken | null> {
    const { store, keys, clock } = this.#parts;
    return await store.access.findToken(keys.hashSecret(token), clock.now());
  }
}
