/**
 * The audit log: what operators changed, and what the gateway changed by itself. Ids grow and are never given twice, so
 * that a gap tells of rows that went with age and of nothing else. One index finds what was done to an object.
 */
import type { Kysely, Migration } from 'kysely';
import { keepRowSums } from '../row-sum-triggers.js';

async function createAudit(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('audit')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('at_ms', 'bigint', (column) => column.notNull())
    .addColumn('actor', 'text', (column) => column.notNull())
    .addColumn('address', 'text')
    .addColumn('agent', 'text')
    .addColumn('os_user', 'text')
    .addColumn('token', 'text')
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('object', 'text', (column) => column.notNull())
    .addColumn('before', 'text')
    .addColumn('after', 'text')
    .addColumn('outcome', 'text', (column) => column.notNull())
    .addColumn('code', 'text')
    .addColumn('ended_at_ms', 'bigint')
    .execute();
  await db.schema.createIndex('audit_object').on('audit').columns(['object', 'id']).execute();
  await keepRowSums(db, 'audit');
}

export const audit: Migration = { up: createAudit };
