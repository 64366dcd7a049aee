/** API keys and tokens in the SQLite store, through Kysely; whatever writes takes its turn on the store's lane. */
import type { Kysely, Selectable } from 'kysely';
import { LockgateError } from '../../proto/errors.js';
import {
  type AccessStore,
  type AccessToken,
  type ApiKey,
  KEYS_PER_MERCHANT,
  type NewAccessToken,
  type NewApiKey,
  SCOPES,
  type StoredApiKey,
  TOKENS_PER_KEY,
} from './access-store.js';
import type { Lane } from './lane.js';
import { merchantNamed } from './registry-tables.js';
import type { ApiKeyTable, Tables } from './schema.js';

/** What tables that are written and read through Kysely need. */
export interface TableParts {
  readonly lane: Lane;
  readonly tables: Kysely<Tables>;
  readonly readTables: Kysely<Tables>;
}

export class SqliteAccess implements AccessStore {
  readonly #parts: TableParts;

  constructor(parts: TableParts) {
    this.#parts = parts;
  }

  addKey({ merchant: name, ...key }: NewApiKey): Promise<ApiKey> {
    return this.#transaction(async (db) => {
      const merchant = await merchantNamed(db, name);
      const { inForce } = await db
        .selectFrom('api_key')
        .select(({ fn }) => fn.countAll<number>().as('inForce'))
        .where('merchant_id', '=', merchant.id)
        .where('revoked_at_ms', 'is', null)
        .executeTakeFirstOrThrow();
      if (inForce >= KEYS_PER_MERCHANT)
        throw new LockgateError(
          'too-many-keys',
          `${JSON.stringify(name)} has ${inForce} API keys in force, which is the most: revoke one first`,
        );
      const row = {
        merchant_id: merchant.id,
        public_id: key.publicId,
        name: key.name,
        secret_hash: key.secretHash,
        created_at_ms: key.nowMs,
        last_used_at_ms: null,
        revoked_at_ms: null,
      };
      const added = await db.insertInto('api_key').values(row).returningAll().executeTakeFirstOrThrow();
      return toApiKey({ ...added, merchant_name: name });
    });
  }

  async findKey(publicId: string): Promise<StoredApiKey | null> {
    const row = await keys(this.#parts.readTables).where('api_key.public_id', '=', publicId).executeTakeFirst();
    return row === undefined ? null : { ...toApiKey(row), secretHash: row.secret_hash };
  }

  async listKeys(merchant?: string): Promise<ApiKey[]> {
    const all = keys(this.#parts.readTables).orderBy('api_key.id');
    const rows = await (merchant === undefined ? all : all.where('merchant.name', '=', merchant)).execute();
    return rows.map(toApiKey);
  }

  revokeKey(publicId: string, nowMs: number): Promise<ApiKey> {
    return this.#transaction(async (db) => {
      const key = await keys(db).where('api_key.public_id', '=', publicId).executeTakeFirst();
      if (key === undefined)
        throw new LockgateError('no-such-key', `there is no API key ${JSON.stringify(publicId.slice(0, 80))}`);
      await db.deleteFrom('access_token').where('key_id', '=', key.id).execute();
      if (key.revoked_at_ms !== null) return toApiKey(key);
      await db.updateTable('api_key').set({ revoked_at_ms: nowMs }).where('id', '=', key.id).execute();
      return toApiKey({ ...key, revoked_at_ms: nowMs });
    });
  }

  noteKeyUse(keyId: number, atMs: number): Promise<void> {
    return this.#transaction(async (db) => {
      await db.updateTable('api_key').set({ last_used_at_ms: atMs }).where('id', '=', keyId).execute();
    });
  }

  addToken({ keyId, tokenHash, scopes, nowMs, expiresAtMs }: NewAccessToken): Promise<void> {
    return this.#transaction(async (db) => {
      await db.deleteFrom('access_token').where('expires_at_ms', '<=', nowMs).execute();
      const row = { key_id: keyId, token_hash: tokenHash, scopes: scopes.join(' '), expires_at_ms: expiresAtMs };
      await db.insertInto('access_token').values(row).execute();
      const kept = db.selectFrom('access_token').select('id').where('key_id', '=', keyId).orderBy('id', 'desc');
      await db
        .deleteFrom('access_token')
        .where('key_id', '=', keyId)
        .where('id', 'not in', kept.limit(TOKENS_PER_KEY))
        .execute();
    });
  }

  async findToken(tokenHash: Buffer, nowMs: number): Promise<AccessToken | null> {
    const row = await this.#parts.readTables
      .selectFrom('access_token')
      .innerJoin('api_key', 'api_key.id', 'access_token.key_id')
      .select(['api_key.merchant_id', 'access_token.scopes'])
      .where('access_token.token_hash', '=', tokenHash)
      .where('access_token.expires_at_ms', '>', nowMs)
      .where('api_key.revoked_at_ms', 'is', null)
      .executeTakeFirst();
    if (row === undefined) return null;
    const given = row.scopes.split(' ');
    return { merchantId: row.merchant_id, scopes: SCOPES.filter((scope) => given.includes(scope)) };
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.lane.run(() => this.#parts.tables.transaction().execute(work));
  }
}

function keys(db: Kysely<Tables>) {
  return db
    .selectFrom('api_key')
    .innerJoin('merchant', 'merchant.id', 'api_key.merchant_id')
    .selectAll('api_key')
    .select('merchant.name as merchant_name');
}

function toApiKey(row: Selectable<ApiKeyTable> & { merchant_name: string }): ApiKey {
  return {
    id: row.id,
    publicId: row.public_id,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    name: row.name,
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    revokedAtMs: row.revoked_at_ms,
  };
}
