/** Migration 0026: indexes for lists of commands in one state and of notices. Shipped: must not change. */
import type { Migration } from 'kysely';

export const listIndexes: Migration = {
  up: async (db) => {
    await db.schema.createIndex('command_by_state').on('command').columns(['state', 'id']).execute();
    await db.schema.createIndex('notice_by_time').on('notice').columns(['last_at_ms', 'id']).execute();
  },
};
