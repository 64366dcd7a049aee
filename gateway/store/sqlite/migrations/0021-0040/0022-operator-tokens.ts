/** Migration 0022: operators' named tokens, with a role and an expiry. Shipped: must not change. */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const operatorTokens: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('operator_token')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('role', 'text', (column) => column.notNull())
      .addColumn('token_hash', 'blob', (column) => column.notNull().unique())
      .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('last_used_at_ms', 'bigint')
      .addColumn('expires_at_ms', 'bigint')
      .addColumn('revoked_at_ms', 'bigint')
      .execute();
    await maintainRowChecksums(db, 'operator_token');
    await db.schema.createIndex('operator_token_by_name').on('operator_token').columns(['name', 'id']).execute();
  },
};
