/** Compares every row with its checksum. */
import type { Database } from 'better-sqlite3';
import { hasValidTypes, type SummedRow, uplinkSum } from '../../log/uplink-sum.js';
import { rowChecksum, type SqlValue } from '../row-checksum.js';
import { SUM_COLUMN, summedColumns } from '../row-checksum-triggers.js';
import type { CheckContext, CheckOutcome } from './context.js';

/**
 * Computes the checksum of a row from its values, in the order of the table's columns, without `sum`; null if a value
 * has a wrong type.
 */
type SumOf = (values: readonly SqlValue[]) => number | null;

/** Tables whose checksums are not those of `row_sum`. */
const SPECIAL_SUMS: Readonly<Record<string, (columns: readonly string[]) => SumOf>> = {
  uplink: (columns) => (values) => {
    const entries = columns.map((column, index) => [column, toNumber(values[index] as SqlValue)]);
    const row = Object.fromEntries(entries) as SummedRow;
    return hasValidTypes(row) ? uplinkSum(row) : null;
  },
};

function toNumber(value: SqlValue): SqlValue {
  return typeof value === 'bigint' ? Number(value) : value;
}

/** Tables of Kysely and SQLite, which have no checksums; other checks cover their content. */
const WITHOUT_SUMS = /^(sqlite_|kysely_)/;
/** Progress is reported once per this many rows. */
const ROWS_PER_REPORT = 10_000;

/** Computes the checksum of every row of every table again. */
export function checkRows(context: CheckContext): CheckOutcome {
  const { db, damage, progress } = context;
  // Tables without a rowid are left out: they are indexes or counts, which other checks compare.
  const tables = db
    .prepare(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0 ORDER BY name`)
    .pluck();
  const tablesWithoutSums: string[] = [];
  let count = 0;
  for (const table of (tables.all() as string[]).filter((name) => !WITHOUT_SUMS.test(name))) {
    const columns = columnsOf(db, table);
    if (!columns.includes(SUM_COLUMN)) {
      tablesWithoutSums.push(table);
      continue;
    }
    const summed = summedColumns(columns);
    const sumOf = SPECIAL_SUMS[table]?.(summed) ?? ((values) => rowChecksum([table, ...values]));
    const columnList = summed.map((column) => `"${column}"`).join(', ');
    const rows = db.prepare(`SELECT rowid, ${SUM_COLUMN}, ${columnList} FROM "${table}"`).raw().safeIntegers();
    for (const [rowid, sum, ...values] of rows.iterate() as IterableIterator<[bigint, SqlValue, ...SqlValue[]]>) {
      count += 1;
      if (count % ROWS_PER_REPORT === 0) progress(count);
      if (!matches(sum, sumOf, values)) damage(table, rowid, sum === null ? 'it has no checksum' : MISMATCH);
    }
  }
  return { count, note: tablesWithoutSums.length === 0 ? null : `without checksums: ${tablesWithoutSums.join(', ')}` };
}

/** Whether a row matches its checksum. A row with a value of a wrong type, which can't be summed, does not match. */
function matches(sum: SqlValue, sumOf: SumOf, values: readonly SqlValue[]): boolean {
  try {
    const expected = sumOf(values);
    return expected !== null && sum === BigInt(expected);
  } catch {
    return false;
  }
}

const MISMATCH = 'it does not match its checksum: it is not what was written';

function columnsOf(db: Database, table: string): string[] {
  return db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[];
}
