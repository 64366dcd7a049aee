/** Statements and usage as CSV files, for spreadsheets (interfaces.md §5). Pure. */
import { stringify } from 'csv-stringify/sync';
import type { Statement } from './statement.js';

/** The columns of a statement. `of_month`: the month of the traffic, which is earlier than `month` in a correction. */
const STATEMENT_COLUMNS = [
  'kind',
  'merchant',
  'month',
  'of_month',
  'mac',
  'messages',
  'connections',
  'bytes_up',
  'bytes_down',
  'bytes',
  'activated_at',
  'activated_in_month',
  'active',
  'data_amount',
  'sim_amount',
  'amount',
  'total',
  'currency',
  'per_mb',
  'per_sim',
  'note',
] as const;

/**
 * Returns a row for each line, correction, total and note, so that the file is self-explanatory. Names that look like
 * formulas are escaped.
 */
export function statementsCsv(statements: readonly Statement[]): string {
  return csvText(statements.flatMap(csvRows), STATEMENT_COLUMNS);
}

/** Returns rows as CSV, after a line of column names. A text that a spreadsheet would run as a formula is escaped. */
export function csvText(rows: readonly Readonly<Record<string, unknown>>[], columns: readonly string[]): string {
  return stringify([...rows], {
    header: true,
    columns: [...columns],
    escape_formulas: true,
    cast: { boolean: (value) => (value ? 'yes' : 'no') },
  });
}

type CsvRow = Partial<Record<(typeof STATEMENT_COLUMNS)[number], unknown>>;

function csvRows(statement: Statement): CsvRow[] {
  const { merchant, month, plan, lines, corrections, totals, notes } = statement;
  const shared = { merchant, month, currency: plan?.currency, per_mb: plan?.per_mb, per_sim: plan?.per_sim };
  return [
    ...lines.map((line) => ({ ...shared, ...line, kind: 'line', of_month: month })),
    ...corrections.map((row) => ({ ...shared, ...row, month, kind: 'correction', of_month: row.month })),
    { ...shared, ...totals, kind: 'total', of_month: month, active: totals.active_sims },
    ...notes.map((text) => ({ kind: 'note', merchant, month, note: text })),
  ];
}
