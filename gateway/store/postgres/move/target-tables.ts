/**
 * The statements that write and read the tables of a store that is moved here from SQLite (`db move`).
 *
 * In PostgreSQL each gateway writes a *slot* of the log of its own, and a *position*, a place in the log, has an id for
 * each slot (contract/log/log-position.ts). SQLite's ids are all in {@link DENSE_SLOT}, so there a position is one id.
 */
import { DENSE_SLOT } from '../../contract/log/log-position.js';
import { CURSOR_COLUMN, POSITION_COLUMNS } from '../../move/moved-tables.js';
import type { MovedValue } from '../../move/rows-sum.js';
import type { Sql } from '../sql.js';

/** The tables that have a column `slot`. */
const TABLES_WITH_SLOT: ReadonlySet<string> = new Set(['uplink', 'webhook_gap']);

/** A table to be filled. */
export interface TargetTable {
  readonly name: string;
  /** The columns in SQLite, in the order of the values. */
  readonly columns: readonly string[];
  /** The type in which each column's values are sent to PostgreSQL, such as `bigint`. */
  readonly types: readonly string[];
}

/**
 * Reads the types of a table's columns. The cursor and the positions of a URL are sent as SQLite has them, as ids:
 * {@link insertRows} stores the cursor in a table of its own, and positions as JSON.
 *
 * @throws Error if a column is not there: the two schemas differ
 */
export async function targetTable(sql: Sql, name: string, columns: readonly string[]): Promise<TargetTable> {
  const rows = await sql.all<{ column_name: string; data_type: string }>(
    `SELECT column_name, data_type FROM information_schema.columns
     WHERE table_schema = current_schema() AND table_name = @name`,
    { name },
  );
  const typeByColumn = new Map(rows.map((row) => [row.column_name, row.data_type]));
  const types = columns.map((column) => {
    if (isCursor(name, column) || isPosition(name, column)) return 'bigint';
    const type = typeByColumn.get(column);
    if (type === undefined) throw new Error(`the column ${column} of ${name} has no place in PostgreSQL`);
    return type;
  });
  return { name, columns, types };
}

/** Writes rows. @param rows each with the values of the table's columns, as {@link storable} returns them */
export async function insertRows(sql: Sql, table: TargetTable, rows: readonly (readonly MovedValue[])[]) {
  const { name, columns, types } = table;
  const values = Object.fromEntries(columns.map((_, index) => [`v${index}`, rows.map((row) => row[index])]));
  const arrays = types.map((type, index) => `@v${index}::${type}[]`).join(', ');
  const source = `unnest(${arrays}) AS t (${columns.map((_, index) => `v${index}`).join(', ')})`;
  const written = columns.flatMap((column, index) => {
    if (isCursor(name, column)) return [];
    const value = `t.v${index}`;
    return [{ column, from: isPosition(name, column) ? positionAfter(value) : value }];
  });
  if (TABLES_WITH_SLOT.has(name)) written.push({ column: 'slot', from: String(DENSE_SLOT) });
  await sql.run(
    `INSERT INTO ${name} (${written.map(({ column }) => `"${column}"`).join(', ')})
     SELECT ${written.map(({ from }) => from).join(', ')} FROM ${source}`,
    values,
  );
  if (name !== 'webhook_url') return;
  const [id, cursor] = ['id', CURSOR_COLUMN].map((column) => `t.v${columns.indexOf(column)}`);
  await sql.run(
    `INSERT INTO url_cursor (url_id, slot, id) SELECT ${id}, ${DENSE_SLOT}, ${cursor} FROM ${source}`,
    values,
  );
}

function isPosition(table: string, column: string): boolean {
  return table === 'webhook_url' && POSITION_COLUMNS.has(column);
}

function isCursor(table: string, column: string): boolean {
  return table === 'webhook_url' && column === CURSOR_COLUMN;
}

/** SQL for the position after an id of SQLite, as JSON: `{}`, the start of the log, for 0; NULL for NULL. */
function positionAfter(id: string): string {
  return `CASE WHEN ${id} = 0 THEN '{}'::jsonb WHEN ${id} > 0 THEN jsonb_build_object('${DENSE_SLOT}', ${id}) END`;
}

/** The statement that reads a table back, with the values that {@link toMovedValues} converts. */
export function readStatement({ name, columns, types }: TargetTable): string {
  const list = columns.map((column, index) => {
    if (isPosition(name, column))
      return `CASE WHEN w."${column}" IS NOT NULL THEN coalesce(w."${column}" ->> '${DENSE_SLOT}', '0') END`;
    if (isCursor(name, column))
      return `(SELECT c.id::text FROM url_cursor c WHERE c.url_id = w.id AND c.slot = ${DENSE_SLOT})`;
    // As text, since ids of users are larger than exact numbers of JavaScript.
    return types[index] === 'bigint' ? `w."${column}"::text` : `w."${column}"`;
  });
  return `SELECT ${list.map((item, index) => `${item} AS v${index}`).join(', ')} FROM ${name} w`;
}

/** The values of a row that {@link readStatement} read. */
export function toMovedValues({ types }: TargetTable, row: Readonly<Record<string, MovedValue>>): MovedValue[] {
  return types.map((type, index) => {
    const value = row[`v${index}`] ?? null;
    return type === 'bigint' && value !== null ? BigInt(value as string) : value;
  });
}

/** An escape in JSON; an escaped backslash is one, so that what follows it is none. */
const ESCAPE = /\\(?:u0000|.)/g;

/**
 * The values as PostgreSQL can store them: it has no character U+0000 in a text, and in a filter not even as an escape.
 * It becomes U+FFFD, as in what a lock sends to a gateway on PostgreSQL.
 */
export function storable({ name, columns }: TargetTable, row: readonly MovedValue[]): readonly MovedValue[] {
  const isFilter = (index: number): boolean => name === 'webhook_url' && columns[index] === 'filter';
  const isUnstorable = (value: MovedValue, index: number): boolean =>
    typeof value === 'string' && (value.includes('\0') || (isFilter(index) && value.includes('\\u0000')));
  if (!row.some(isUnstorable)) return row;
  return row.map((value, index) => {
    if (typeof value !== 'string') return value;
    const text = value.replaceAll('\0', '\uFFFD');
    return isFilter(index) ? text.replace(ESCAPE, (found) => (found === '\\u0000' ? '\\ufffd' : found)) : text;
  });
}
