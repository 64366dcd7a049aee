/**
 * Migration 0007: from this version on, the values of custom webhook headers are stored sealed (encrypted with the
 * store's key), since they often contain a merchant's bearer token. A migration has no key. So this one only adds a
 * column that says, for each webhook URL, whether its header values are sealed; 0 for all existing URLs. The next start
 * of the gateway seals the values of these URLs (data-folder/secrets.ts). Shipped: must not change.
 */
import type { Migration } from 'kysely';

export const sealedHeaders: Migration = {
  up: async (db) => {
    await db.schema
      .alterTable('webhook_url')
      .addColumn('headers_sealed', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
  },
};
