/**
 * Migration 0012: each lock's state records the last uplink that it includes. From this version on, states are written
 * only occasionally, and a start judges later uplinks again (locks/rebuild-state.ts). Existing states were written with
 * every uplink, so they include all uplinks. Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

export const stateLastUplink: Migration = {
  up: async (db) => {
    await db.schema
      .alterTable('device_state')
      .addColumn('through_uplink_id', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    await sql`UPDATE device_state SET through_uplink_id = (SELECT coalesce(max(id), 0) FROM uplink)`.execute(db);
    await maintainRowChecksums(db, 'device_state');
  },
};
