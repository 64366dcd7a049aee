/** API keys and tokens in PostgreSQL. */
import type { AccessStore, AccessToken, StoredApiKey } from '../../../contract/merchants/access-store.js';
import {
  type AccessParts,
  AccessTables,
  KEY_BY_PUBLIC_ID,
  type KeyRow,
  TOKEN_BY_HASH,
  type TokenRow,
  toAccessToken,
  toApiKey,
} from '../../../tables/access.js';
import type { Sql } from '../../sql.js';

export class Access extends AccessTables implements AccessStore {
  readonly #read: Sql;

  constructor(parts: AccessParts, read: Sql) {
    super(parts);
    this.#read = read;
  }

  async findKey(publicId: string): Promise<StoredApiKey | null> {
    const row = await this.#read.get<KeyRow>(KEY_BY_PUBLIC_ID, { publicId });
    return row === undefined ? null : { ...toApiKey(row), secretHash: row.secret_hash };
  }

  async findToken(tokenHash: Buffer, nowMs: number): Promise<AccessToken | null> {
    return toAccessToken(await this.#read.get<TokenRow>(TOKEN_BY_HASH, { tokenHash, nowMs }));
  }
}
