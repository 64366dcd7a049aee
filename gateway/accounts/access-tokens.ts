/**
 * Bearer and access tokens, which are one thing (interfaces.md §2): opaque, for one hour, stored hashed. They are
 * looked up by their hash: it is keyed, so nobody can steer a comparison by what they send.
 */
import { randomBytes } from 'node:crypto';
import { type Clock, Hours, type Milliseconds } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { AccessToken, Scope } from '../store/contract/merchants/access-store.js';
import type { Store } from '../store/contract/store.js';

/** How long a token is in force. */
export const TOKEN_LIFE: Milliseconds = Hours(1);

const PREFIX = 'lgt_';
const TOKEN_BYTES = 32;

export interface AccessTokensParts {
  readonly store: Store;
  readonly keys: Keys;
  /** The wall's. */
  readonly clock: Clock;
}

export class AccessTokens {
  readonly #parts: AccessTokensParts;

  constructor(parts: AccessTokensParts) {
    this.#parts = parts;
  }

  /** A new token of a key's; it ends with the key. */
  async issue(keyId: number, scopes: readonly Scope[]): Promise<string> {
    const { store, keys, clock } = this.#parts;
    const token = PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
    const nowMs = clock.now();
    const tokenHash = keys.hashSecret(token);
    await store.access.addToken({ keyId, tokenHash, scopes, nowMs, expiresAtMs: nowMs + TOKEN_LIFE });
    return token;
  }

  /** The token, where it is in force. */
  async check(token: string): Promise<AccessToken | null> {
    const { store, keys, clock } = this.#parts;
    return await store.access.findToken(keys.hashSecret(token), clock.now());
  }
}
