/**
 * The column `sum` of a table and the triggers that fill it (quality.md §2, bit rot). A migration that adds a table, or
 * a column to one, calls {@link keepRowSums} for it.
 *
 * A trigger sums the row as stored, after SQLite has converted each value to its column's type. A statement on a hot
 * path may set `sum` itself, from the same values, and the trigger does nothing then: that costs half.
 */
import type { Kysely } from 'kysely';
import { sql } from './kysely.js';
import { ROW_SUM } from './row-sum.js';

/** The column that a row's sum is in. */
export const SUM_COLUMN = 'sum';

/** The columns of a table that are summed, in their order. */
export function summedColumns(columns: readonly string[]): string[] {
  return columns.filter((column) => column !== SUM_COLUMN);
}

/** Adds the column and the triggers to a table, and sums its rows. May be called again. */
export async function keepRowSums(db: Kysely<unknown>, table: string): Promise<void> {
  const columns = await columnsOf(db, table);
  const statements: string[] = [];
  if (columns.includes(SUM_COLUMN))
    statements.push(`DROP TRIGGER IF EXISTS ${table}_sum_new`, `DROP TRIGGER IF EXISTS ${table}_sum_changed`);
  else statements.push(`ALTER TABLE "${table}" ADD COLUMN ${SUM_COLUMN} INTEGER`);
  const summed = summedColumns(columns);
  const sumOf = (from: string): string => {
    return `${ROW_SUM}('${table}', ${summed.map((column) => `${from}"${column}"`).join(', ')})`;
  };
  const fill = `UPDATE "${table}" SET ${SUM_COLUMN} = ${sumOf('NEW.')} WHERE rowid = NEW.rowid`;
  const ofAny = summed.map((column) => `"${column}"`).join(', ');
  statements.push(
    `UPDATE "${table}" SET ${SUM_COLUMN} = ${sumOf('')}`,
    `CREATE TRIGGER ${table}_sum_new AFTER INSERT ON "${table}" WHEN NEW.${SUM_COLUMN} IS NULL BEGIN ${fill}; END`,
    `CREATE TRIGGER ${table}_sum_changed AFTER UPDATE OF ${ofAny} ON "${table}"
     WHEN NEW.${SUM_COLUMN} IS OLD.${SUM_COLUMN} BEGIN ${fill}; END`,
  );
  for (const statement of statements) await sql.raw(statement).execute(db);
}

async function columnsOf(db: Kysely<unknown>, table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM pragma_table_info(${table})`.execute(db);
  return rows.map(({ name }) => name);
}
