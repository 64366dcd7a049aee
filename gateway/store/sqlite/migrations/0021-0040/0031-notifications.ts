/**
 * Migration 0031: notifications, messages about troubles to the URLs of operators and merchants, with their recipients
 * and signing secrets. A notification has two messages, one when the trouble opens and one when it ends, each with a
 * state (`opened_state`, `ended_state`); `attempts` and `next_attempt_at_ms` are about the one that is being sent.
 * Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const notifications: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('notify_recipient')
      .addColumn('id', 'integer', (column) => column.primaryKey())
      .addColumn('url', 'text')
      .addColumn('last_success_at_ms', 'bigint')
      .addColumn('last_error_at_ms', 'bigint')
      .addColumn('last_error_status', 'integer')
      .addColumn('last_error', 'text')
      .execute();
    await db.schema
      .createTable('notify_secret')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('recipient_id', 'integer', (column) => column.notNull())
      .addColumn('secret_sealed', 'blob', (column) => column.notNull())
      .addColumn('valid_until_ms', 'bigint')
      .execute();
    await db.schema
      .createTable('notification')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('recipient_id', 'integer', (column) => column.notNull())
      .addColumn('public_id', 'text', (column) => column.notNull())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('subject', 'text', (column) => column.notNull())
      .addColumn('text', 'text', (column) => column.notNull())
      .addColumn('details', 'text', (column) => column.notNull())
      .addColumn('opened_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('ended_at_ms', 'bigint')
      .addColumn('ended_how', 'text')
      .addColumn('opened_state', 'text', (column) => column.notNull())
      .addColumn('ended_state', 'text')
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('next_attempt_at_ms', 'bigint')
      .execute();
    await db.schema
      .createIndex('notify_secret_by_recipient')
      .on('notify_secret')
      .columns(['recipient_id', 'id'])
      .execute();
    // Finds a trouble's latest notification.
    await db.schema
      .createIndex('notification_by_trouble')
      .on('notification')
      .columns(['recipient_id', 'kind', 'subject', 'id'])
      .execute();
    await db.schema
      .createIndex('notification_due')
      .on('notification')
      .columns(['recipient_id', 'next_attempt_at_ms', 'id'])
      .where('next_attempt_at_ms', 'is not', null)
      .execute();
    for (const table of ['notify_recipient', 'notify_secret', 'notification']) await maintainRowChecksums(db, table);
  },
};
