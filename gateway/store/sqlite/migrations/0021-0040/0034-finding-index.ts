/** Migration 0034: an index for the list of a merchant's findings. Shipped: must not change. */
import type { Migration } from 'kysely';

export const findingIndex: Migration = {
  up: async (db) => {
    await db.schema.createIndex('finding_by_merchant').on('finding').columns(['merchant_id', 'id']).execute();
  },
};
