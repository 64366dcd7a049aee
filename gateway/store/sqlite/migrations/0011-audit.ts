/**
 * Migration 0011: the audit log, with the changes of operators and of the gateway itself. Ids are never reused, so a
 * gap before the first id shows only that old rows were deleted. One index finds the changes of an object. Shipped:
 * must not change.
 */
import type { Kysely, Migration } from 'kysely';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

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
  await maintainRowChecksums(db, 'audit');
}

export const audit: Migration = { up: createAudit };
