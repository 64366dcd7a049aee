/**
 * What was refused of locks, for some days: one row for each reason, in which repeats are counted. The unique index is
 * what a repeat is found by, and what is read of a lock; the other finds what is too old.
 */
import type { Kysely, Migration } from 'kysely';
import { keepRowSums } from '../row-sum-triggers.js';

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
  await keepRowSums(db, 'refusal');
}

export const refusals: Migration = { up: createRefusals };
