/**
 * Migration 0032: a webhook URL may have a rate of attempts, a time limit of an attempt and a certificate authority of
 * its own. Existing URLs have none. Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const webhookLimits: Migration = {
  up: async (db) => {
    await db.schema.alterTable('webhook_url').addColumn('attempts_per_second', 'real').execute();
    await db.schema.alterTable('webhook_url').addColumn('timeout_ms', 'integer').execute();
    await db.schema.alterTable('webhook_url').addColumn('ca', 'text').execute();
    await maintainRowChecksums(db, 'webhook_url');
  },
};
