/**
 * Migration 0013: how long a webhook URL has failed while a gateway was running, and the pause that its receiver asked
 * for: its end (`held_until_ms`) and its length (`held_for_ms`). The failing time of existing URLs is unknown; it
 * starts at zero, so that no URL is disabled too early. Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

export const webhookFailingAndHold: Migration = {
  up: async (db) => {
    await db.schema
      .alterTable('webhook_url')
      .addColumn('failing_for_ms', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    for (const column of ['held_until_ms', 'held_for_ms'])
      await db.schema.alterTable('webhook_url').addColumn(column, 'bigint').execute();
    await maintainRowChecksums(db, 'webhook_url');
  },
};
