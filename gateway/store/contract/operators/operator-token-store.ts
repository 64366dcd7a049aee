/**
 * Operators' named tokens in the store, as hashes. As in store.ts, a method that writes resolves after the write is on
 * the disk. Times are ms since the epoch, wall-clock time.
 */

/**
 * What a token may do, each role more than the one before (interfaces.md §4): `metrics` reads metrics; `read` reads
 * everything but backups, settings and stored traces; `operate` also changes commands, locks, webhooks and users;
 * `admin` does everything.
 */
export const OPERATOR_ROLES = ['metrics', 'read', 'operate', 'admin'] as const;

export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** Maximum number of tokens that are not revoked. */
export const MAX_OPERATOR_TOKENS = 100;

/** Maximum number of revoked tokens that are kept for lists; older ones are deleted. */
export const MAX_REVOKED_TOKENS = 100;

export interface OperatorTokenRecord {
  readonly id: number;
  /** Unique among the tokens that are not revoked. */
  readonly name: string;
  readonly role: OperatorRole;
  readonly createdAtMs: number;
  /** To about a minute; null if never used. */
  readonly lastUsedAtMs: number | null;
  /** Null for a token that does not expire. */
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
}

export interface NewOperatorToken {
  readonly name: string;
  readonly role: OperatorRole;
  readonly tokenHash: Buffer;
  readonly expiresAtMs: number | null;
  readonly nowMs: number;
}

export interface OperatorTokenStore {
  /** @throws LockgateError `token-exists`, `too-many-tokens` */
  add(token: NewOperatorToken): Promise<OperatorTokenRecord>;
  /** Returns the token with this hash, valid or not. */
  find(tokenHash: Buffer): Promise<OperatorTokenRecord | null>;
  /** Returns all tokens, oldest first. */
  list(): Promise<OperatorTokenRecord[]>;
  /** Revokes the token with this name. @throws LockgateError `no-such-token` */
  revoke(name: string, nowMs: number): Promise<OperatorTokenRecord>;
  /** Records that a token was used. */
  recordUse(id: number, atMs: number): Promise<void>;
}
