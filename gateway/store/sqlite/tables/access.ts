/** API keys and tokens in the SQLite store. Writes caused by merchants' calls go to the log's writer. */
import type { Database, Statement } from 'better-sqlite3';
import type { AccessStore, AccessToken, StoredApiKey } from '../../contract/merchants/access-store.js';
import {
  type AccessParts,
  AccessTables,
  KEY_BY_PUBLIC_ID,
  type KeyRow,
  TOKEN_BY_HASH,
  type TokenRow,
  toAccessToken,
  toApiKey,
} from '../../tables/access.js';

export class SqliteAccess extends AccessTables implements AccessStore {
  readonly #key: Statement;
  readonly #token: Statement;

  constructor(parts: AccessParts, reader: Database) {
    super(parts);
    this.#key = reader.prepare(KEY_BY_PUBLIC_ID);
    this.#token = reader.prepare(TOKEN_BY_HASH);
  }

  async findKey(publicId: string): Promise<StoredApiKey | null> {
    const row = this.#key.get({ publicId }) as KeyRow | undefined;
    return row === undefined ? null : { ...toApiKey(row), secretHash: row.secret_hash };
  }

  async findToken(tokenHash: Buffer, nowMs: number): Promise<AccessToken | null> {
    return toAccessToken(this.#token.get({ tokenHash, nowMs }) as TokenRow | undefined);
  }
}
