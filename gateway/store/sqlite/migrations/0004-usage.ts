/** Migration 0004: SIM cards, usage counts, price plans and monthly statements. Shipped: must not change. */
import type { Kysely, Migration } from 'kysely';

type Schema = Kysely<unknown>;

/**
 * Each count has a column `billed_…`: the part of the count that closed statements have. A difference in a closed month
 * was counted after the statement was closed.
 */
async function createCounts(db: Schema): Promise<void> {
  let table = db.schema
    .createTable('usage')
    .addColumn('month', 'text', (column) => column.notNull())
    .addColumn('mac', 'text', (column) => column.notNull())
    .addColumn('merchant_id', 'integer', (column) => column.notNull())
    .addColumn('simulated', 'integer', (column) => column.notNull())
    .addColumn('changed_at_ms', 'integer', (column) => column.notNull());
  for (const what of ['messages_up', 'messages_down', 'connections', 'bytes_up', 'bytes_down'] as const)
    table = table
      .addColumn(what, 'bigint', (column) => column.notNull())
      .addColumn(`billed_${what}`, 'bigint', (column) => column.notNull().defaultTo(0));
  await table.addPrimaryKeyConstraint('usage_key', ['month', 'mac', 'merchant_id', 'simulated']).execute();
  await db.schema.createIndex('usage_by_merchant').on('usage').columns(['merchant_id', 'month']).execute();
}

export const usage: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('sim')
      .addColumn('mac', 'text', (column) => column.primaryKey())
      .addColumn('activated_at_ms', 'bigint', (column) => column.notNull())
      .execute();
    await createCounts(db);
    await db.schema
      .createTable('price_plan')
      .addColumn('merchant_id', 'integer', (column) => column.notNull())
      .addColumn('from_month', 'text', (column) => column.notNull())
      .addColumn('per_mb', 'text', (column) => column.notNull())
      .addColumn('per_sim', 'text', (column) => column.notNull())
      .addColumn('currency', 'text', (column) => column.notNull())
      .addColumn('set_at_ms', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('price_plan_key', ['merchant_id', 'from_month'])
      .execute();
    await db.schema
      .createTable('statement')
      .addColumn('merchant_id', 'integer', (column) => column.notNull())
      .addColumn('month', 'text', (column) => column.notNull())
      .addColumn('closed_at_ms', 'bigint', (column) => column.notNull())
      .addColumn('body', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('statement_key', ['merchant_id', 'month'])
      .execute();
  },
};
