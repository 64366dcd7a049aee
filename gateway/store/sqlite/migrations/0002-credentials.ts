/**
 * Migration 0002: phone credentials, which have a name and may expire; removed locks; and the merchant of each finding,
 * quarantined message and lock event, so that a lock's history stays with the merchant that had it then. Shipped: must
 * not change.
 */
import type { Kysely, Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';

/** The tables that get a merchant's id; `uplink` has one from the start. */
const OWNED = ['finding', 'quarantine', 'lock_event'] as const;

export const credentials: Migration = {
  up: async (db: Kysely<unknown>) => {
    await db.schema.alterTable('credential').addColumn('name', 'text').execute();
    await db.schema.alterTable('credential').addColumn('expires_at_ms', 'integer').execute();
    await db.schema.alterTable('device').addColumn('removed_at_ms', 'integer').execute();
    for (const table of OWNED) {
      await db.schema.alterTable(table).addColumn('merchant_id', 'integer').execute();
      const owner = sql`(SELECT merchant_id FROM device WHERE device.id = ${sql.ref(`${table}.device_id`)})`;
      await sql`UPDATE ${sql.table(table)} SET merchant_id = ${owner}`.execute(db);
    }
  },
};
