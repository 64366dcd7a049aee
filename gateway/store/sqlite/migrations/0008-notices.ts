/**
 * Migration 0008: notices for operators. For each kind and subject at most one notice is unresolved or unread; a repeat
 * is counted in that notice. The partial index enforces this and finds the notice. Shipped: must not change.
 */
import type { Kysely, Migration, SqlBool } from 'kysely';
import { sql } from '../../tables/kysely.js';

async function createNotices(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('notice')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('subject', 'text', (column) => column.notNull())
    .addColumn('text', 'text', (column) => column.notNull())
    .addColumn('count', 'integer', (column) => column.notNull())
    .addColumn('first_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('last_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('read_at_ms', 'bigint')
    .addColumn('resolved_at_ms', 'bigint')
    .execute();
  await db.schema
    .createIndex('notice_current')
    .unique()
    .on('notice')
    .columns(['kind', 'subject'])
    .where(sql<SqlBool>`resolved_at_ms IS NULL OR read_at_ms IS NULL`)
    .execute();
}

export const notices: Migration = { up: createNotices };
