/**
 * The values of custom headers are sealed, as secrets are: they often hold a merchant's bearer token. A migration has
 * no key, so here is only the mark of what is sealed; the gateway seals what is not when it starts (secrets.ts).
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
