/**
 * Migration 0015: reflash marks, the times at which a lock's flash was wiped. They split the lock's uplinks into lives,
 * in each of which boots count from 1 (protocol.md §1). Most locks have no marks. Shipped: must not change.
 */
import type { Kysely, Migration } from 'kysely';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

async function createMarks(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('reflash_mark')
    .addColumn('id', 'integer', (column) => column.primaryKey())
    .addColumn('device_id', 'integer', (column) => column.notNull())
    .addColumn('mark_ms', 'bigint', (column) => column.notNull())
    .execute();
  await maintainRowChecksums(db, 'reflash_mark');
  const marks = db.schema.createIndex('reflash_mark_of_device').on('reflash_mark').columns(['device_id', 'mark_ms']);
  await marks.unique().execute();
}

export const reflashMarks: Migration = { up: createMarks };
