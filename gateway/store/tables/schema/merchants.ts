/**
 * The rows of the tables of merchants, and of what belongs to them: API keys, users, pets. ../schema.ts says what all
 * tables have in common.
 */
import type { Generated } from 'kysely';

export interface MerchantTable {
  id: Generated<number>;
  name: string;
  created_at_ms: number;
  /** Null while the merchant is open. */
  closed_at_ms: number | null;
  /** When it was last opened again, or null. */
  reopened_at_ms: number | null;
}

/** A merchant's API key. */
export interface ApiKeyTable {
  id: Generated<number>;
  merchant_id: number;
  /** The part of the key that identifies it; not secret. */
  public_id: string;
  name: string;
  /** HMAC-SHA-256 of the whole key. */
  secret_hash: Buffer;
  created_at_ms: number;
  last_used_at_ms: number | null;
  revoked_at_ms: number | null;
  /** Separated by spaces (key-scopes.ts). */
  scopes: Generated<string>;
  /** Null for a key that does not expire. */
  expires_at_ms: number | null;
}

/** A bearer token that was issued for an API key. */
export interface AccessTokenTable {
  id: Generated<number>;
  key_id: number;
  /** HMAC-SHA-256 of the token. */
  token_hash: Buffer;
  /** Separated by spaces, as in OAuth. */
  scopes: string;
  expires_at_ms: number;
}

/**
 * A merchant's user. The id is any int64, which a JavaScript number would round. So it is written as a bigint, and read
 * either as one (`safeIntegers`) or as text that the query casts.
 */
export interface UserAccountTable {
  merchant_id: number;
  id: bigint;
  username: string | null;
  /** The key by which names are compared (merchants/username-key.ts). */
  username_key: string | null;
  first_name: string | null;
  last_name: string | null;
  email: string | null;
  phone: string | null;
  /** An Argon2id hash in PHC format; null for a user who can't log in. */
  password_hash: string | null;
  user_status: number | null;
  created_at_ms: number;
  /** The role on the dashboard (merchants/dashboard-roles.ts), or null. */
  dashboard_role: string | null;
}

export interface UserSessionTable {
  id: Generated<number>;
  merchant_id: number;
  user_id: bigint;
  /** HMAC-SHA-256 of the session's token. */
  token_hash: Buffer;
  expires_at_ms: number;
}

/** An open invitation of a user of the dashboard (merchants/invitation-store.ts). */
export interface InvitationTable {
  id: Generated<number>;
  merchant_id: number;
  /** HMAC-SHA-256 of the token. */
  token_hash: Buffer;
  /** The name that the user gets, and its key; null if the invited person chooses. */
  username: string | null;
  username_key: string | null;
  dashboard_role: string;
  created_at_ms: number;
  expires_at_ms: number;
}

/**
 * A merchant's pet, a record that the specification of the merchants' interface has beside locks. The store assigns the
 * ids, which count from 1 for each merchant.
 */
export interface PetTable {
  merchant_id: number;
  id: bigint;
  name: string;
  /** The id of the user who owns the pet, as the caller wrote it: any text, not a foreign key. */
  owner_id: string | null;
  species: string | null;
  breed: string | null;
  status: string | null;
  /** JSON. */
  photo_urls: string;
  /** JSON with exact int64 ids; null if the pet has none. */
  category: string | null;
  /** JSON, as `category`. */
  tags: string | null;
  created_at_ms: number;
  changed_at_ms: number;
}

/** The last id that the store assigned to a merchant's users or pets. */
export interface MerchantSequenceTable {
  merchant_id: number;
  what: 'user' | 'pet';
  last_id: number;
}

/** The answer to a merchant's call with an idempotency key (contract/command-record.ts). Times are wall-clock time. */
export interface IdempotentAnswerTable {
  id: Generated<number>;
  merchant_id: number;
  route: string;
  key: string;
  body_digest: Buffer;
  answer: string;
  created_at_ms: number;
}
