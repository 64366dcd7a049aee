/**
 * Migration 0019: the answers of merchants' calls with an idempotency key, so that a repeated call gets the same answer
 * (contract/command-record.ts), and indexes for a merchant's list of commands. Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

export const idempotency: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('idempotent_answer')
      .addColumn('id', 'integer', (column) => column.primaryKey())
      .addColumn('merchant_id', 'integer', (column) => column.notNull())
      .addColumn('route', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('body_digest', 'blob', (column) => column.notNull())
      .addColumn('answer', 'text', (column) => column.notNull())
      .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
      .execute();
    await db.schema
      .createIndex('idempotent_answer_by_key')
      .unique()
      .on('idempotent_answer')
      .columns(['merchant_id', 'route', 'key'])
      .execute();
    await db.schema.createIndex('idempotent_answer_by_age').on('idempotent_answer').column('created_at_ms').execute();
    await maintainRowChecksums(db, 'idempotent_answer');
    await db.schema.createIndex('command_by_merchant').on('command').columns(['merchant_id', 'id']).execute();
    await db.schema
      .createIndex('command_by_merchant_state')
      .on('command')
      .columns(['merchant_id', 'state', 'id'])
      .execute();
  },
};
