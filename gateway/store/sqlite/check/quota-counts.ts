/**
 * Counts again what each merchant stores, and compares the result with the table `merchant_kept`, in which triggers
 * count (people/quota-counts.ts). That table has no checksums, and quotas rely on it.
 */
import { COUNTED_TABLES, countedBytes } from '../tables/people/quota-counts.js';
import type { CheckContext, CheckOutcome } from './context.js';

/** What a merchant stores in one table. */
interface TableCount {
  readonly merchant_id: number;
  readonly rows: number;
  readonly bytes: number;
}

/** A row of `merchant_kept`. */
type KeptRow = Readonly<Record<string, number>> & { readonly merchant_id: number };

/** Checks every merchant that stores something or has a count. */
export function checkQuotaCounts({ db, damage }: CheckContext): CheckOutcome {
  const counted = new Map<number, Map<string, number>>();
  const add = (merchantId: number, column: string, count: number): void => {
    const counts = counted.get(merchantId) ?? new Map<string, number>();
    counts.set(column, (counts.get(column) ?? 0) + count);
    counted.set(merchantId, counts);
  };
  for (const countedTable of COUNTED_TABLES) {
    // `merchant` returns the SQL expression of a row's merchant.
    const { table, column, merchant } = countedTable;
    const rows = db.prepare(
      `SELECT ${merchant(table)} AS merchant_id, count(*) AS rows, sum(${countedBytes(countedTable, table)}) AS bytes
       FROM ${table} GROUP BY 1`,
    );
    for (const { merchant_id: merchantId, rows: count, bytes } of rows.all() as TableCount[]) {
      add(merchantId, column, count);
      add(merchantId, 'bytes', bytes);
    }
  }
  const columns = [...COUNTED_TABLES.map(({ column }) => column), 'bytes'];
  const rows = db.prepare('SELECT * FROM merchant_kept').all() as KeptRow[];
  for (const row of rows) {
    const counts = counted.get(row.merchant_id);
    const wrongColumns = columns.filter((column) => row[column] !== (counts?.get(column) ?? 0));
    for (const column of wrongColumns)
      damage(
        'merchant_kept',
        row.merchant_id,
        `its count of ${column} is ${row[column]}; expected ${counts?.get(column) ?? 0}`,
      );
    counted.delete(row.merchant_id);
  }
  for (const merchantId of counted.keys())
    damage('merchant_kept', merchantId, 'the merchant stores something, but has no counts');
  return { count: rows.length };
}
