/**
 * Each row gets a checksum (row-sum.ts), those that are there already too. The log has its own, which whoever appends
 * to it computes. SQLite only: an engine that sums its pages itself needs none of this.
 */
import type { Kysely, Migration } from 'kysely';
import { sql } from '../kysely.js';
import { keepRowSums } from '../row-sum-triggers.js';

/**
 * The log; and what belongs to the migrations themselves, which other versions of lockgate write too. Tables without a
 * rowid are indexes of the log in all but name: what they have is compared with it.
 */
const OTHERS = ['uplink', 'kysely_migration', 'kysely_migration_lock'];

async function sumAll(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0
      AND name NOT LIKE 'sqlite_%' ORDER BY name`.execute(db);
  for (const { name } of rows) if (!OTHERS.includes(name)) await keepRowSums(db, name);
}

export const rowSums: Migration = { up: sumAll };
