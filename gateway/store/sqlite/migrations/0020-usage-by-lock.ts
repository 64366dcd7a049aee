/** Migration 0020: an index for a merchant's list of usage, which is read page by page. Shipped: must not change. */
import type { Migration } from 'kysely';

export const usageByLock: Migration = {
  up: async (db) => {
    await db.schema.dropIndex('usage_by_merchant').execute();
    await db.schema
      .createIndex('usage_by_merchant')
      .on('usage')
      .columns(['merchant_id', 'month', 'mac', 'simulated'])
      .execute();
  },
};
