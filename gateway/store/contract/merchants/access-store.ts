/**
 * Credentials of HTTP callers: API keys, and the tokens issued for them. The promises of store.ts hold: a method that
 * writes resolves after the write is on the disk. Secrets come hashed and never leave. Times are ms since the epoch,
 * wall-clock time.
 */

/** What a token may be used for (interfaces.md §2). */
export const SCOPES = ['pets:write', 'webhooks:test'] as const;

export type Scope = (typeof SCOPES)[number];

/** Keys of a merchant that may be valid at the same time. */
export const KEYS_PER_MERCHANT = 100;

/** Tokens of a key that may be valid at the same time; one more revokes the oldest. */
export const TOKENS_PER_KEY = 1000;

export interface ApiKey {
  readonly id: number;
  /** The part of the key that names it; not secret. */
  readonly publicId: string;
  readonly merchantId: number;
  readonly merchantName: string;
  /** Its name for people. */
  readonly name: string;
  readonly createdAtMs: number;
  /** To the minute or so; null where it never was used. */
  readonly lastUsedAtMs: number | null;
  readonly revokedAtMs: number | null;
}

export interface NewApiKey {
  /** The merchant's name. */
  readonly merchant: string;
  readonly publicId: string;
  readonly name: string;
  readonly secretHash: Buffer;
  readonly nowMs: number;
}

/** A key with the hash to compare a caller's key with. */
export interface StoredApiKey extends ApiKey {
  readonly secretHash: Buffer;
}

export interface NewAccessToken {
  readonly keyId: number;
  readonly tokenHash: Buffer;
  readonly scopes: readonly Scope[];
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

/** A valid token. */
export interface AccessToken {
  readonly merchantId: number;
  readonly scopes: readonly Scope[];
}

export interface AccessStore {
  /** @throws LockgateError `no-such-merchant`, `too-many-keys` */
  addKey(key: NewApiKey): Promise<ApiKey>;
  /** The key of this public id, revoked or not. */
  findKey(publicId: string): Promise<StoredApiKey | null>;
  /** All keys, or those of the merchant of this name, oldest first. */
  listKeys(merchant?: string): Promise<ApiKey[]>;
  /** Revokes a key and its tokens. A second call changes nothing. @throws LockgateError `no-such-key` */
  revokeKey(publicId: string, nowMs: number): Promise<ApiKey>;
  /** Records that a key was used. */
  noteKeyUse(keyId: number, atMs: number): Promise<void>;
  /** Adds a token and deletes expired ones. */
  addToken(token: NewAccessToken): Promise<void>;
  /** The token with this hash; null where it or its key is not valid. */
  findToken(tokenHash: Buffer, nowMs: number): Promise<AccessToken | null>;
}
