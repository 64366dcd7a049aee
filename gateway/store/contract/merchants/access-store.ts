/**
 * Credentials of HTTP callers in the store: API keys, and the tokens issued for them. As in store.ts, a method that
 * writes resolves after the write is on the disk. The store gets only hashes of secrets. Times are ms since the epoch,
 * wall-clock time.
 */
import type { KeyScope } from './key-scopes.js';

/** What a token may be used for (interfaces.md §2). */
export const SCOPES = ['pets:write', 'webhooks:test'] as const;

export type Scope = (typeof SCOPES)[number];

/** Maximum number of valid keys of a merchant; revoked and expired keys don't count. */
export const MAX_KEYS_PER_MERCHANT = 100;

/** Maximum number of valid tokens of a key; one more revokes the oldest. */
export const MAX_TOKENS_PER_KEY = 1000;

export interface ApiKey {
  readonly id: number;
  /** The part of the key that identifies it; not secret. */
  readonly publicId: string;
  readonly merchantId: number;
  readonly merchantName: string;
  /** A name that the operator chose. */
  readonly name: string;
  readonly createdAtMs: number;
  /** To about a minute; null if never used. */
  readonly lastUsedAtMs: number | null;
  readonly revokedAtMs: number | null;
  /** Null for a key that does not expire. */
  readonly expiresAtMs: number | null;
  /** The operations that the key may call. */
  readonly scopes: readonly KeyScope[];
  /** Whether the merchant is closed: then the key is invalid. */
  readonly isMerchantClosed: boolean;
}

export interface NewApiKey {
  /** The merchant's name. */
  readonly merchant: string;
  readonly publicId: string;
  readonly name: string;
  readonly secretHash: Buffer;
  readonly scopes: readonly KeyScope[];
  /** Null for a key that does not expire. */
  readonly expiresAtMs: number | null;
  readonly nowMs: number;
}

/** A key, and the hash to compare a caller's key with. */
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
  /** @throws LockgateError `no-such-merchant`, `merchant-closed`, `too-many-keys` */
  addKey(key: NewApiKey): Promise<ApiKey>;
  /** Returns the key with this public id, valid or not. */
  findKey(publicId: string): Promise<StoredApiKey | null>;
  /** Returns all keys, or those of the merchant with this name, oldest first. */
  listKeys(merchant?: string): Promise<ApiKey[]>;
  /** Revokes a key and its tokens. A second call changes nothing. @throws LockgateError `no-such-key` */
  revokeKey(publicId: string, nowMs: number): Promise<ApiKey>;
  /** Gives a key another name, also a revoked one. @throws LockgateError `no-such-key` */
  renameKey(publicId: string, name: string): Promise<ApiKey>;
  /** Records that a key was used. */
  recordKeyUse(keyId: number, atMs: number): Promise<void>;
  /** Adds a token and deletes expired tokens. */
  addToken(token: NewAccessToken): Promise<void>;
  /** Returns the token with this hash; null if the token or its key is not valid, or the merchant is closed. */
  findToken(tokenHash: Buffer, nowMs: number): Promise<AccessToken | null>;
}
