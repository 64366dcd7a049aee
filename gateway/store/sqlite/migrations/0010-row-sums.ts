/**
 * Migration 0010: each row gets a checksum (row-checksum.ts), existing rows too. Uplinks are excluded: the log's writer
 * computes their checksums (log/uplink-sum.ts). An engine with page checksums would not need this. Shipped: must not
 * change.
 */
import type { Kysely, Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

/**
 * Tables without these checksums: the log, and the tables of the migrations, which other versions of lockgate write
 * too. Tables without a rowid (`wr`) are left out as well: they are indexes of the log and are compared with the log.
 */
const EXCLUDED = ['uplink', 'kysely_migration', 'kysely_migration_lock'];

async function sumAll(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0
      AND name NOT LIKE 'sqlite_%' ORDER BY name`.execute(db);
  for (const { name } of rows) if (!EXCLUDED.includes(name)) await maintainRowChecksums(db, name);
}

export const rowChecksums: Migration = { up: sumAll };
