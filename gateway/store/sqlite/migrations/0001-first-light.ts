/**
 * Migration 0001: the first tables: registry (merchants, locks, credentials), log, findings, webhooks, metadata
 * (`fact`). What each column means is in ../../tables/schema/. Shipped: must not change.
 */
import type { Kysely, Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';

type Schema = Kysely<unknown>;

async function createRegistry(db: Schema): Promise<void> {
  await db.schema
    .createTable('merchant')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('name', 'text', (column) => column.notNull().unique())
    .addColumn('created_at_ms', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('device')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('mac', 'text', (column) => column.notNull().unique())
    .addColumn('merchant_id', 'integer', (column) => column.notNull().references('merchant.id'))
    .addColumn('simulated', 'integer', (column) => column.notNull())
    .addColumn('created_at_ms', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('credential')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('device_id', 'integer', (column) => column.notNull().references('device.id'))
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('secret_hash', 'blob', (column) => column.notNull())
    .addColumn('created_at_ms', 'integer', (column) => column.notNull())
    .addColumn('revoked_at_ms', 'integer')
    .execute();
  await db.schema.createIndex('credential_by_device').on('credential').column('device_id').execute();
}

/**
 * Ids of uplinks are never reused (autoIncrement): even if every row is deleted by age, a new id must be higher than
 * every cursor.
 */
async function createLog(db: Schema): Promise<void> {
  await db.schema
    .createTable('uplink')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('device_id', 'integer', (column) => column.notNull())
    .addColumn('merchant_id', 'integer', (column) => column.notNull())
    .addColumn('credential_id', 'integer', (column) => column.notNull())
    .addColumn('boot', 'integer', (column) => column.notNull())
    .addColumn('sequence', 'integer', (column) => column.notNull())
    .addColumn('digest', 'blob', (column) => column.notNull())
    .addColumn('kind', 'integer', (column) => column.notNull())
    .addColumn('bytes', 'blob', (column) => column.notNull())
    .addColumn('received_at_ms', 'integer', (column) => column.notNull())
    .addColumn('buffered', 'integer', (column) => column.notNull())
    .execute();
  // These columns identify an uplink, so a repeated one is not stored twice. Migration 0009 drops the index.
  await db.schema
    .createIndex('uplink_by_name')
    .unique()
    .on('uplink')
    .columns(['credential_id', 'boot', 'sequence', 'digest'])
    .execute();
  // Kind 0 is a lock's answer to a command. Higher kinds are events for merchants.
  await db.schema
    .createIndex('uplink_as_event')
    .on('uplink')
    .columns(['merchant_id', 'id'])
    .where(sql.ref('kind'), '>', sql.lit(0))
    .execute();
  await db.schema
    .createTable('device_state')
    .addColumn('device_id', 'integer', (column) => column.primaryKey())
    .addColumn('state', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('quarantine')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('device_id', 'integer', (column) => column.notNull())
    .addColumn('credential_id', 'integer', (column) => column.notNull())
    .addColumn('received_at_ms', 'integer', (column) => column.notNull())
    .addColumn('code', 'text', (column) => column.notNull())
    .addColumn('message', 'text', (column) => column.notNull())
    .addColumn('bytes', 'blob', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('quarantine_by_device').on('quarantine').columns(['device_id', 'id']).execute();
}

async function createWebhooks(db: Schema): Promise<void> {
  await db.schema
    .createTable('webhook_url')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('merchant_id', 'integer', (column) => column.notNull().references('merchant.id'))
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('headers', 'text', (column) => column.notNull())
    .addColumn('secret_sealed', 'blob', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('disabled_why', 'text')
    .addColumn('cursor', 'integer', (column) => column.notNull())
    .addColumn('created_at_ms', 'integer', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('delivery')
    .addColumn('url_id', 'integer', (column) => column.notNull())
    .addColumn('uplink_id', 'integer', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('next_attempt_at_ms', 'integer')
    .addPrimaryKeyConstraint('delivery_key', ['url_id', 'uplink_id'])
    .execute();
  await db.schema
    .createIndex('delivery_due')
    .on('delivery')
    .columns(['url_id', 'next_attempt_at_ms'])
    .where(sql.ref('state'), '=', sql.lit('pending'))
    .execute();
  await db.schema
    .createTable('attempt')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('url_id', 'integer', (column) => column.notNull())
    .addColumn('uplink_id', 'integer', (column) => column.notNull())
    .addColumn('number', 'integer', (column) => column.notNull())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('duration_ms', 'integer', (column) => column.notNull())
    .addColumn('status', 'integer')
    .addColumn('error', 'text')
    .addColumn('answer', 'text')
    .execute();
  await db.schema.createIndex('attempt_by_event').on('attempt').columns(['url_id', 'uplink_id']).execute();
}

async function createJudgements(db: Schema): Promise<void> {
  await db.schema.createIndex('uplink_by_device').on('uplink').columns(['device_id', 'id']).execute();
  await db.schema
    .createTable('lock_event')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('device_id', 'integer', (column) => column.notNull())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('after_uplink_id', 'integer', (column) => column.notNull())
    .addColumn('event', 'text', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('lock_event_by_device').on('lock_event').columns(['device_id', 'id']).execute();
  await db.schema
    .createTable('finding')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('device_id', 'integer', (column) => column.notNull())
    .addColumn('at_ms', 'integer', (column) => column.notNull())
    .addColumn('rule', 'text', (column) => column.notNull())
    .addColumn('severity', 'text', (column) => column.notNull())
    .addColumn('message', 'text', (column) => column.notNull())
    .addColumn('credential_id', 'integer')
    .addColumn('boot', 'integer')
    .addColumn('sequence', 'integer')
    .execute();
  await db.schema.createIndex('finding_by_device').on('finding').columns(['device_id', 'id']).execute();
}

async function createFacts(db: Schema): Promise<void> {
  await db.schema
    .createTable('fact')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute();
}

export const firstLight: Migration = {
  up: async (db) => {
    await createRegistry(db);
    await createLog(db);
    await createJudgements(db);
    await createWebhooks(db);
    await createFacts(db);
  },
};
