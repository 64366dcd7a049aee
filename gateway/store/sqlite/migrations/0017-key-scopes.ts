/**
 * Migration 0017: the scopes of API keys. Existing keys get the scope `spec`: the operations that existed until then.
 * Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

export const keyScopes: Migration = {
  up: async (db) => {
    await db.schema
      .alterTable('api_key')
      .addColumn('scopes', 'text', (column) => column.notNull().defaultTo('spec'))
      .execute();
    await maintainRowChecksums(db, 'api_key');
  },
};
