/** Migration 0027: one-time invitations of users of the dashboard. Shipped: must not change. */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const invitations: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('invitation')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('merchant_id', 'integer', (column) => column.notNull().references('merchant.id'))
      .addColumn('token_hash', 'blob', (column) => column.notNull().unique())
      .addColumn('username', 'text')
      .addColumn('username_key', 'text')
      .addColumn('dashboard_role', 'text', (column) => column.notNull())
      .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('expires_at_ms', 'bigint', (column) => column.notNull())
      .execute();
    await maintainRowChecksums(db, 'invitation');
    const index = db.schema.createIndex('invitation_by_merchant').on('invitation');
    await index.columns(['merchant_id', 'id']).execute();
  },
};
