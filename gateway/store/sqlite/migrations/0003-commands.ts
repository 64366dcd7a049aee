/** Migration 0003: commands to locks, and their results. Shipped: must not change. */
import type { Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';

/**
 * Ids are never reused (autoIncrement): a lock executes an id only once, so a command with a reused id would be lost.
 */
export const commands: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('command')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('device_id', 'integer', (column) => column.notNull())
      .addColumn('merchant_id', 'integer', (column) => column.notNull())
      .addColumn('type', 'text', (column) => column.notNull())
      .addColumn('parameters', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('created_at_ms', 'integer', (column) => column.notNull())
      .addColumn('not_before_ms', 'integer')
      .addColumn('expires_at_ms', 'integer', (column) => column.notNull())
      .addColumn('first_sent_at_ms', 'integer')
      .addColumn('last_sent_at_ms', 'integer')
      .addColumn('sent_count', 'integer', (column) => column.notNull())
      .addColumn('finished_at_ms', 'integer')
      .addColumn('detail', 'text', (column) => column.notNull())
      .addColumn('asked_by', 'text', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('command_by_device').on('command').columns(['device_id', 'id']).execute();
    await db.schema
      .createIndex('command_unfinished')
      .on('command')
      .column('id')
      .where(sql.ref('state'), 'in', sql`('queued', 'sent')`)
      .execute();
  },
};
