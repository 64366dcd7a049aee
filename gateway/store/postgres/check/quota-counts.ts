/**
 * Counts again what each merchant stores, and compares the result with the table `merchant_kept`, in which triggers
 * count (../migrations/0001-tables/quota-counts.ts): quotas rely on it.
 */
import { BYTES_PER_ROW, COUNTED } from '../migrations/0001-tables/quota-counts.js';
import type { CheckContext, CheckOutcome } from './context.js';

interface TableCount {
  readonly merchant_id: number;
  readonly rows: number;
  readonly bytes: number;
}

type KeptRow = Readonly<Record<string, number>> & { readonly merchant_id: number };

export async function checkQuotaCounts({ sql, damage }: CheckContext): Promise<CheckOutcome> {
  const counted = new Map<number, Map<string, number>>();
  const add = (merchantId: number, column: string, count: number): void => {
    const counts = counted.get(merchantId) ?? new Map<string, number>();
    counts.set(column, (counts.get(column) ?? 0) + count);
    counted.set(merchantId, counts);
  };
  for (const [table, { count, columns }] of Object.entries(COUNTED)) {
    const bytes = [BYTES_PER_ROW, ...columns.map((column) => `coalesce(octet_length(t.${column}), 0)`)].join(' + ');
    const merchant =
      table === 'access_token' ? '(SELECT merchant_id FROM api_key WHERE id = t.key_id)' : 't.merchant_id';
    const rows = await sql.all<TableCount>(
      `SELECT ${merchant} AS merchant_id, count(*) AS rows, sum(${bytes}) AS bytes FROM ${table} t GROUP BY 1`,
    );
    for (const row of rows) {
      add(row.merchant_id, count, row.rows);
      add(row.merchant_id, 'bytes', row.bytes);
    }
  }
  const names = [...Object.values(COUNTED).map(({ count }) => count), 'bytes'];
  const kept = await sql.all<KeptRow>('SELECT * FROM merchant_kept');
  for (const row of kept) {
    const counts = counted.get(row.merchant_id);
    for (const name of names) {
      const expected = counts?.get(name) ?? 0;
      if (row[name] !== expected)
        damage('merchant_kept', row.merchant_id, `its count of ${name} is ${row[name]}; expected ${expected}`);
    }
    counted.delete(row.merchant_id);
  }
  for (const merchantId of counted.keys())
    damage('merchant_kept', merchantId, 'the merchant stores something, but has no counts');
  return { count: kept.length };
}
