/**
 * What proves who calls over HTTP: API keys and the tokens that they were given. The promises of store.ts hold: a
 * method that writes resolves after the write is on the disk. Secrets come hashed and never leave. Times are ms since
 * the epoch, by the wall's clock.
 */

/** What a token may be used for (interfaces.md §2). */
export const SCOPES = ['pets:write', 'webhooks:test'] as const;

export type Scope = (typeof SCOPES)[number];

/** Keys of a merchant that may be in force at the same time. */
export const KEYS_PER_MERCHANT = 100;

/** Tokens of a key that may be in force at the same time; of more, the oldest ends. */
export const TOKENS_PER_KEY = 1000;

export interface ApiKey {
  readonly id: number;
  /** The part of the key that names it; not secret. */
  readonly publicId: string;
  readonly merchantId: number;
  readonly merchantName: string;
  /** What people call it. */
  readonly name: string;
  readonly createdAtMs: number;
  /** Give or take a minute; null where it never was. */
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

/** A key as it is compared with what somebody sent. */
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

/** A token that is in force. */
export interface AccessToken {
  readonly merchantId: number;
  readonly scopes: readonly Scope[];
}

export interface AccessStore {
  /** @throws LockgateError `no-such-merchant`, `too-many-keys` */
  addKey(key: NewApiKey): Promise<ApiKey>;
  /** The key of this public id, revoked or not. */
  findKey(publicId: string): Promise<StoredApiKey | null>;
  /** All of them, or a merchant's by its name, oldest first. */
  listKeys(merchant?: string): Promise<ApiKey[]>;
  /** Ends a key, and its tokens with it. Done again, it changes nothing. @throws LockgateError `no-such-key` */
  revokeKey(publicId: string, nowMs: number): Promise<ApiKey>;
  /** Notes that a key was used. */
  noteKeyUse(keyId: number, atMs: number): Promise<void>;
  /** Adds a token and forgets those that have expired. */
  addToken(token: NewAccessToken): Promise<void>;
  /** The token that has this hash, where it and its key are in force. */
  findToken(tokenHash: Buffer, nowMs: number): Promise<AccessToken | null>;
}
