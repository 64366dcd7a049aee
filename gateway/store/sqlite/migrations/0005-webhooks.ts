/**
 * Migration 0005: ordered webhook URLs, rotation of secrets, events that a URL did not get (gaps), resent deliveries.
 * Shipped: must not change.
 */
import type { Kysely, Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';

type Schema = Kysely<unknown>;

async function extendUrls(db: Schema): Promise<void> {
  for (const column of ['ordered', 'started_after'])
    await db.schema
      .alterTable('webhook_url')
      .addColumn(column, 'integer', (type) => type.notNull().defaultTo(0))
      .execute();
  await db.schema.alterTable('webhook_url').addColumn('failing_since_ms', 'integer').execute();
  // An existing URL gets events from its creation on. Only the time of its creation is known, so the uplink id is
  // estimated.
  await sql`UPDATE webhook_url SET started_after = min(cursor, coalesce(
    (SELECT max(id) FROM uplink WHERE received_at_ms < webhook_url.created_at_ms), 0))`.execute(db);
  await db.schema
    .createTable('webhook_old_secret')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('url_id', 'integer', (column) => column.notNull())
    .addColumn('secret_sealed', 'blob', (column) => column.notNull())
    .addColumn('valid_until_ms', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('webhook_gap')
    .addColumn('url_id', 'integer', (column) => column.notNull())
    .addColumn('after_id', 'integer', (column) => column.notNull())
    .addColumn('until_id', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('webhook_gap_key', ['url_id', 'after_id'])
    .execute();
}

async function extendDeliveries(db: Schema): Promise<void> {
  for (const column of ['device_id', 'attempts_before'])
    await db.schema
      .alterTable('delivery')
      .addColumn(column, 'integer', (type) => type.notNull().defaultTo(0))
      .execute();
  await sql`UPDATE delivery SET device_id = coalesce(
    (SELECT device_id FROM uplink WHERE uplink.id = delivery.uplink_id), 0)`.execute(db);
  await db.schema
    .createIndex('delivery_by_lock')
    .on('delivery')
    .columns(['url_id', 'device_id', 'uplink_id'])
    .where(sql.ref('state'), '=', sql.lit('pending'))
    .execute();
  await db.schema.createIndex('delivery_by_state').on('delivery').columns(['url_id', 'state', 'uplink_id']).execute();
}

export const webhooks: Migration = {
  up: async (db) => {
    await extendUrls(db);
    await extendDeliveries(db);
  },
};
