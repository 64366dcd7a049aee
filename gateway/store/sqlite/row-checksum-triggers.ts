/**
 * The column `sum`, the checksum of a table's rows, and the triggers that compute it (quality.md §2, bit rot). A
 * migration that adds a table, or a column to a table, must call {@link maintainRowChecksums} for the table.
 *
 * A trigger computes the checksum of the stored row, after SQLite has converted each value to its column's type. A
 * statement on a hot path may set `sum` itself; the trigger then does nothing, which costs half as much.
 */
import type { Kysely } from 'kysely';
import { sql } from '../tables/kysely.js';
import { ROW_CHECKSUM } from './row-checksum.js';

/** The name of the checksum's column. */
export const SUM_COLUMN = 'sum';

/** Returns the columns of a table that the checksum covers, in their order. */
export function summedColumns(columns: readonly string[]): string[] {
  return columns.filter((column) => column !== SUM_COLUMN);
}

/** Adds the column and the triggers to a table, and computes the checksums of its rows. May be called repeatedly. */
export async function maintainRowChecksums(db: Kysely<unknown>, table: string): Promise<void> {
  const columns = await columnsOf(db, table);
  const statements: string[] = [];
  if (columns.includes(SUM_COLUMN))
    statements.push(`DROP TRIGGER IF EXISTS ${table}_sum_new`, `DROP TRIGGER IF EXISTS ${table}_sum_changed`);
  else statements.push(`ALTER TABLE "${table}" ADD COLUMN ${SUM_COLUMN} INTEGER`);
  const summed = summedColumns(columns);
  const sumCall = (prefix: string): string => {
    return `${ROW_CHECKSUM}('${table}', ${summed.map((column) => `${prefix}"${column}"`).join(', ')})`;
  };
  const setSum = `UPDATE "${table}" SET ${SUM_COLUMN} = ${sumCall('NEW.')} WHERE rowid = NEW.rowid`;
  const columnList = summed.map((column) => `"${column}"`).join(', ');
  statements.push(
    `UPDATE "${table}" SET ${SUM_COLUMN} = ${sumCall('')}`,
    `CREATE TRIGGER ${table}_sum_new AFTER INSERT ON "${table}" WHEN NEW.${SUM_COLUMN} IS NULL BEGIN ${setSum}; END`,
    `CREATE TRIGGER ${table}_sum_changed AFTER UPDATE OF ${columnList} ON "${table}"
     WHEN NEW.${SUM_COLUMN} IS OLD.${SUM_COLUMN} BEGIN ${setSum}; END`,
  );
  for (const statement of statements) await sql.raw(statement).execute(db);
}

async function columnsOf(db: Kysely<unknown>, table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM pragma_table_info(${table})`.execute(db);
  return rows.map(({ name }) => name);
}
