/** Migration 0023: users may have a role on the dashboard; existing users have none. Shipped: must not change. */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const dashboardRoles: Migration = {
  up: async (db) => {
    await db.schema.alterTable('user_account').addColumn('dashboard_role', 'text').execute();
    await maintainRowChecksums(db, 'user_account');
    // Counts a merchant's owners.
    await db.schema
      .createIndex('user_account_by_role')
      .on('user_account')
      .columns(['merchant_id', 'dashboard_role'])
      .where('dashboard_role', 'is not', null)
      .execute();
  },
};
