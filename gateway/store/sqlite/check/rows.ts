/** Every row against its checksum. */
import type { Database } from 'better-sqlite3';
import { type SummedRow, uplinkSum } from '../log/uplink-sum.js';
import { rowSum, type SqlValue } from '../row-sum.js';
import { SUM_COLUMN, summedColumns } from '../row-sum-triggers.js';
import type { CheckContext, CheckOutcome } from './context.js';

/** A row's values, in the order of the table's columns, without its sum. */
type SumOf = (values: readonly SqlValue[]) => number;

/** Tables whose rows are summed in another way than by the triggers. */
const OWN_SUMS: Readonly<Record<string, (columns: readonly string[]) => SumOf>> = {
  uplink: (columns) => (values) => {
    const named = columns.map((column, index) => [column, plain(values[index] as SqlValue)]);
    return uplinkSum(Object.fromEntries(named) as SummedRow);
  },
};

function plain(value: SqlValue): SqlValue {
  return typeof value === 'bigint' ? Number(value) : value;
}

/** Tables that are Kysely's or SQLite's, which have no sums; their content is looked at by other checks. */
const WITHOUT_SUMS = /^(sqlite_|kysely_)/;
const REPORT_EVERY = 10_000;

/** Sums every row of every table again. */
export function checkRows(context: CheckContext): CheckOutcome {
  const { db, damage, progress } = context;
  // A table without a rowid is in effect an index.
  const tables = db
    .prepare(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND wr = 0 ORDER BY name`)
    .pluck();
  const unsummed: string[] = [];
  let count = 0;
  for (const table of (tables.all() as string[]).filter((name) => !WITHOUT_SUMS.test(name))) {
    const columns = columnsOf(db, table);
    if (!columns.includes(SUM_COLUMN)) {
      unsummed.push(table);
      continue;
    }
    const summed = summedColumns(columns);
    const sumOf = OWN_SUMS[table]?.(summed) ?? ((values) => rowSum([table, ...values]));
    const list = summed.map((column) => `"${column}"`).join(', ');
    const rows = db.prepare(`SELECT rowid, ${SUM_COLUMN}, ${list} FROM "${table}"`).raw().safeIntegers();
    for (const [rowid, sum, ...values] of rows.iterate() as IterableIterator<[bigint, SqlValue, ...SqlValue[]]>) {
      count += 1;
      if (count % REPORT_EVERY === 0) progress(count);
      if (!fits(sum, sumOf, values)) damage(table, rowid, sum === null ? 'it has no checksum' : MISFIT);
    }
  }
  return { count, note: unsummed.length === 0 ? null : `without checksums: ${unsummed.join(', ')}` };
}

/** A row that can't be summed, since a value has a type that was never written, doesn't fit. */
function fits(sum: SqlValue, sumOf: SumOf, values: readonly SqlValue[]): boolean {
  try {
    return sum === BigInt(sumOf(values));
  } catch {
    return false;
  }
}

const MISFIT = 'it doesn’t fit its checksum: it is not what was written';

function columnsOf(db: Database, table: string): string[] {
  return db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[];
}
