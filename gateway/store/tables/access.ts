/**
 * API keys, through Kysely. The engines (SQLite, PostgreSQL) look up keys and tokens in hand-written SQL, which is
 * faster: each call of a merchant needs a lookup, even one with a guessed key. They write tokens in their own ways.
 */
import type { Kysely, Selectable } from 'kysely';
import { LockgateError } from '../../../proto/errors.js';
import {
  type ApiKey,
  MAX_KEYS_PER_MERCHANT,
  type NewAccessToken,
  type NewApiKey,
  SCOPES,
} from '../contract/merchants/access-store.js';
import { orderedScopes } from '../contract/merchants/key-scopes.js';
import type { WriteForMerchant } from './merchant-refusals.js';
import { findOpenMerchant } from './registry.js';
import type { ApiKeyTable } from './schema/merchants.js';
import type { Tables } from './schema.js';
import type { TableParts } from './table-parts.js';

export interface AccessParts extends TableParts {
  /** Makes the writes caused by merchants' calls; operators' changes go through `tables`. */
  readonly write: WriteForMerchant;
}

/** A key with its merchant, for `findKey`. */
export const KEY_BY_PUBLIC_ID = `SELECT k.*, m.name AS merchant_name, m.closed_at_ms AS merchant_closed_at_ms
  FROM api_key k JOIN merchant m ON m.id = k.merchant_id WHERE k.public_id = @publicId`;
/** The merchant and the scopes of a valid token, for `findToken`. */
export const TOKEN_BY_HASH = `SELECT k.merchant_id, t.scopes FROM access_token t
  JOIN api_key k ON k.id = t.key_id JOIN merchant m ON m.id = k.merchant_id
  WHERE t.token_hash = @tokenHash AND t.expires_at_ms > @nowMs AND k.revoked_at_ms IS NULL
    AND (k.expires_at_ms IS NULL OR k.expires_at_ms > @nowMs) AND m.closed_at_ms IS NULL`;

/** A row of {@link TOKEN_BY_HASH}. */
export interface TokenRow {
  readonly merchant_id: number;
  readonly scopes: string;
}

/** Maximum length of an unknown name that an error quotes, in characters. */
const MAX_QUOTED_CHARS = 80;

/** What engines share of an `AccessStore`; each adds `findKey` and `findToken`. */
export abstract class AccessTables {
  protected readonly parts: AccessParts;

  constructor(parts: AccessParts) {
    this.parts = parts;
  }

  addKey({ merchant: name, ...key }: NewApiKey): Promise<ApiKey> {
    return this.#transaction(async (db) => {
      const merchant = await findOpenMerchant(db, name);
      const { validKeys } = await db
        .selectFrom('api_key')
        .select(({ fn }) => fn.countAll<number>().as('validKeys'))
        .where('merchant_id', '=', merchant.id)
        .where('revoked_at_ms', 'is', null)
        .where(({ eb }) => eb.or([eb('expires_at_ms', 'is', null), eb('expires_at_ms', '>', key.nowMs)]))
        .executeTakeFirstOrThrow();
      if (validKeys >= MAX_KEYS_PER_MERCHANT)
        throw new LockgateError(
          'too-many-keys',
          `${JSON.stringify(name)} has ${validKeys} valid API keys, which is the maximum: revoke one first`,
        );
      const row = {
        merchant_id: merchant.id,
        public_id: key.publicId,
        name: key.name,
        secret_hash: key.secretHash,
        created_at_ms: key.nowMs,
        last_used_at_ms: null,
        revoked_at_ms: null,
        scopes: key.scopes.join(' '),
        expires_at_ms: key.expiresAtMs,
      };
      const added = await db.insertInto('api_key').values(row).returningAll().executeTakeFirstOrThrow();
      return toApiKey({ ...added, merchant_name: name, merchant_closed_at_ms: null });
    });
  }

  async listKeys(merchant?: string): Promise<ApiKey[]> {
    let query = selectKeys(this.parts.readTables).orderBy('api_key.id');
    if (merchant !== undefined) query = query.where('merchant.name', '=', merchant);
    const rows = await query.execute();
    return rows.map(toApiKey);
  }

  revokeKey(publicId: string, nowMs: number): Promise<ApiKey> {
    return this.#transaction(async (db) => {
      const key = await findRow(db, publicId);
      await db.deleteFrom('access_token').where('key_id', '=', key.id).execute();
      if (key.revoked_at_ms !== null) return toApiKey(key);
      await db.updateTable('api_key').set({ revoked_at_ms: nowMs }).where('id', '=', key.id).execute();
      return toApiKey({ ...key, revoked_at_ms: nowMs });
    });
  }

  renameKey(publicId: string, name: string): Promise<ApiKey> {
    return this.#transaction(async (db) => {
      const key = await findRow(db, publicId);
      await db.updateTable('api_key').set({ name }).where('id', '=', key.id).execute();
      return toApiKey({ ...key, name });
    });
  }

  async recordKeyUse(keyId: number, atMs: number): Promise<void> {
    await this.parts.write('record the use of a key', { op: 'record-key-use', keyId, atMs });
  }

  async addToken(token: NewAccessToken): Promise<void> {
    await this.parts.write('add a token', { op: 'add-token', token });
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.parts.mutex.runExclusive(() => this.parts.tables.transaction().execute(work));
  }
}

/** @throws LockgateError `no-such-key` */
async function findRow(db: Kysely<Tables>, publicId: string) {
  const key = await selectKeys(db).where('api_key.public_id', '=', publicId).executeTakeFirst();
  if (key !== undefined) return key;
  throw new LockgateError('no-such-key', `there is no API key ${JSON.stringify(publicId.slice(0, MAX_QUOTED_CHARS))}`);
}

/** A query for API keys with their merchants' names. */
function selectKeys(db: Kysely<Tables>) {
  return db
    .selectFrom('api_key')
    .innerJoin('merchant', 'merchant.id', 'api_key.merchant_id')
    .selectAll('api_key')
    .select(['merchant.name as merchant_name', 'merchant.closed_at_ms as merchant_closed_at_ms']);
}

/** A row of {@link KEY_BY_PUBLIC_ID}. */
export type KeyRow = Selectable<ApiKeyTable> & {
  readonly merchant_name: string;
  readonly merchant_closed_at_ms: number | null;
};

export function toApiKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    publicId: row.public_id,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    name: row.name,
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    revokedAtMs: row.revoked_at_ms,
    expiresAtMs: row.expires_at_ms,
    scopes: orderedScopes(row.scopes.split(' ')),
    isMerchantClosed: row.merchant_closed_at_ms !== null,
  };
}

/** Converts a row; null if there is none. A scope of a later version of lockgate is left out. */
export function toAccessToken(row: TokenRow | undefined) {
  if (row === undefined) return null;
  const tokenScopes = row.scopes.split(' ');
  return { merchantId: row.merchant_id, scopes: SCOPES.filter((scope) => tokenScopes.includes(scope)) };
}
