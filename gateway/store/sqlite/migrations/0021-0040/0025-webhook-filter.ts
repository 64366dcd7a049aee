/**
 * Migration 0025: which events a webhook URL gets, and which part of the log its cursor passed under a filter. Existing
 * URLs get all pings. Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const webhookFilter: Migration = {
  up: async (db) => {
    await db.schema.alterTable('webhook_url').addColumn('filter', 'text').execute();
    for (const column of ['filtered_after', 'filtered_until'])
      await db.schema.alterTable('webhook_url').addColumn(column, 'integer').execute();
    await maintainRowChecksums(db, 'webhook_url');
  },
};
