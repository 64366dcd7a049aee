/** Migration 0021: API keys may expire. Existing keys do not. Shipped: must not change. */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const keyExpiry: Migration = {
  up: async (db) => {
    await db.schema.alterTable('api_key').addColumn('expires_at_ms', 'bigint').execute();
    await maintainRowChecksums(db, 'api_key');
  },
};
