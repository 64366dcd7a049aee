/** Migration 0028: sessions of the console, and links that open operators' sessions. Shipped: must not change. */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const consoleSessions: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('console_session')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      // user, operator, or link
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('token_hash', 'blob', (column) => column.notNull().unique())
      .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('expires_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('address', 'text', (column) => column.notNull())
      .addColumn('agent', 'text')
      .addColumn('merchant_id', 'integer')
      .addColumn('user_id', 'bigint')
      .addColumn('role', 'text')
      .addColumn('token_name', 'text')
      .addColumn('token_id', 'integer')
      .addColumn('session_ends_at_ms', 'bigint')
      .execute();
    await maintainRowChecksums(db, 'console_session');
    await db.schema
      .createIndex('console_session_by_holder')
      .on('console_session')
      .columns(['kind', 'merchant_id', 'user_id', 'id'])
      .execute();
    await db.schema.createIndex('console_session_by_end').on('console_session').column('expires_at_ms').execute();
  },
};
