/**
 * Migration 0007: the values of custom headers are sealed, as secrets are, since they often contain a merchant's bearer
 * token. A migration has no key, so it only adds the column that says whether they are sealed; the gateway's start
 * seals the others (data-folder/secrets.ts). Released: must not change.
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
