/** Migration 0030: merchants may be closed and reopened. Existing merchants are open. Shipped: must not change. */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const merchantClosing: Migration = {
  up: async (db) => {
    await db.schema.alterTable('merchant').addColumn('closed_at_ms', 'bigint').execute();
    await db.schema.alterTable('merchant').addColumn('reopened_at_ms', 'bigint').execute();
    await maintainRowChecksums(db, 'merchant');
  },
};
