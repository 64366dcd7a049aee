/**
 * Migration 0014: refusals of locks, retained for some days: one row for each reason, with a count. `reason` is the
 * reason's code and `why` its sentence, which may say more. The unique index finds repeats and a lock's rows; the other
 * index finds old rows. Shipped: must not change.
 */
import type { Kysely, Migration } from 'kysely';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

async function createRefusals(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('refusal')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('device_id', 'integer', (column) => column.notNull())
    .addColumn('merchant_id', 'integer', (column) => column.notNull())
    .addColumn('source', 'text', (column) => column.notNull())
    .addColumn('what', 'text', (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('why', 'text', (column) => column.notNull())
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('count', 'integer', (column) => column.notNull())
    .addColumn('first_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('last_at_ms', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('refusal_same')
    .unique()
    .on('refusal')
    .columns(['device_id', 'merchant_id', 'source', 'what', 'why'])
    .execute();
  await db.schema.createIndex('refusal_by_age').on('refusal').column('last_at_ms').execute();
  await maintainRowChecksums(db, 'refusal');
}

export const refusals: Migration = { up: createRefusals };
