/**
 * Migration 0033: the index of the log by lock says a little of each uplink (../../../log/uplink-hint.ts), so that
 * scans need not read the rows that they do not want. Uplinks that are already in the index have no hint. Shipped:
 * must not change.
 */
import type { Migration } from 'kysely';

export const uplinkHints: Migration = {
  up: async (db) => {
    await db.schema.alterTable('uplink_of_device').addColumn('hint', 'integer').execute();
  },
};
