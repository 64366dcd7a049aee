/**
 * Migration 0009: two tables, filled in sorted runs, replace the indexes of uplinks by key and by lock, so that the log
 * is written only in the order of arrival; and each uplink gets a checksum. Existing uplinks, maybe millions, are added
 * in steps when the store is opened (log-catch-up.ts). The only row of `uplink_settled` has the id up to which the
 * tables are complete (`settled_id`), and the last id that an older version stored (`caught_up_at`). Shipped: must not
 * change.
 */
import type { Kysely, Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';

/** Makes the changes. May be run again after an interruption. */
async function narrow(db: Kysely<unknown>): Promise<void> {
  const columns = await sql<{ name: string }>`SELECT name FROM pragma_table_info('uplink')`.execute(db);
  if (!columns.rows.some(({ name }) => name === 'sum'))
    await db.schema.alterTable('uplink').addColumn('sum', 'integer').execute();
  await sql`CREATE TABLE IF NOT EXISTS uplink_name (credential_id integer NOT NULL, boot integer NOT NULL,
    sequence integer NOT NULL, uplink_id integer NOT NULL,
    PRIMARY KEY (credential_id, boot, sequence, uplink_id)) WITHOUT ROWID`.execute(db);
  await sql`CREATE TABLE IF NOT EXISTS uplink_of_device (device_id integer NOT NULL, uplink_id integer NOT NULL,
    PRIMARY KEY (device_id, uplink_id)) WITHOUT ROWID`.execute(db);
  await sql`CREATE TABLE IF NOT EXISTS uplink_settled (one integer PRIMARY KEY CHECK (one = 1),
    settled_id integer NOT NULL, caught_up_at integer NOT NULL)`.execute(db);
  await sql`INSERT OR IGNORE INTO uplink_settled
    SELECT 1, 0, coalesce((SELECT max(id) FROM uplink), 0)`.execute(db);
  await db.schema.dropIndex('uplink_by_name').ifExists().execute();
  await db.schema.dropIndex('uplink_by_device').ifExists().execute();
}

export const narrowLog: Migration = { up: narrow };
