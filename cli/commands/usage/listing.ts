/** `lockgate usage show`: prints usage by lock and month, or totals by lock or by month. */
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { printEmptyList, printJson, printNote, sanitizeLine, terminalWidth } from '../../terminal/output.js';
import { type CellStyle, type Column, linesOfTable, printTable } from '../../terminal/table.js';
import { maxOf, widthOf } from '../../terminal/text-width.js';
import { bar, byteText } from './text.js';

/** The flags of `lockgate usage show`. */
export interface UsageFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly merchant?: string;
  readonly month?: string;
  readonly by?: 'lock' | 'month';
  readonly limit?: number;
}

interface Counts {
  readonly messages: number;
  readonly connections: number;
  /** `bytes_up`, from locks to the gateway, and `bytes_down`. */
  readonly bytes: number;
  readonly bytes_up: number;
  readonly bytes_down: number;
}

/** The usage of a lock in a month, as the operator interface returns it. */
interface UsageJson extends Counts {
  readonly month: string;
  readonly mac: string;
  readonly merchant: string;
  readonly simulated: boolean;
}

/** A row of the table. A total has the number of locks or months that it sums up. */
interface UsageRow extends Counts {
  readonly mac?: string;
  readonly month?: string;
  readonly locks?: number;
  readonly months?: number;
  readonly merchant?: string;
  readonly simulated?: boolean;
}

/** The fraction of the terminal width left by the other columns that the bar takes, and its limits in columns. */
const BAR_WIDTH_FRACTION = 1 / 3;
const MIN_BAR_WIDTH = 6;
const MAX_BAR_WIDTH = 40;

/** Prints the rows with the total below: newest month first, within a month the highest usage first. */
export async function showUsage(mac: string | undefined, flags: UsageFlags): Promise<void> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ mac, merchant: flags.merchant, month: flags.month }))
    if (value !== undefined) query.set(name, value);
  const { usage } = await new GatewayClient(flags).get<{ usage: UsageJson[] }>(`/usage?${query}`);
  const rows = flags.by === undefined ? usage : totalsBy(usage, flags.by);
  const shown = [...rows].sort(byMonthAndBytes).slice(0, flags.limit);
  const total = addAll(usage);
  if (flags.json) return printJson({ usage: shown, total });
  if (usage.length === 0)
    return printEmptyList([mac, flags.merchant, flags.month], 'No usage matches.', 'There is no usage yet.');
  printRows(shown, total);
  const hidden = rows.length - shown.length;
  if (hidden > 0)
    printNote(`${hidden} more row${hidden === 1 ? '' : 's'}, included in TOTAL; a higher --limit shows more.`);
}

/** Sorts: newest month first, then highest usage first, then by MAC. */
function byMonthAndBytes(a: UsageRow, b: UsageRow): number {
  if (a.month !== b.month) return (a.month ?? '') < (b.month ?? '') ? 1 : -1;
  return b.bytes - a.bytes || ((a.mac ?? '') < (b.mac ?? '') ? -1 : 1);
}

/** Sums the usage up for each lock or each month. */
function totalsBy(usage: readonly UsageJson[], by: 'lock' | 'month'): UsageRow[] {
  const groups = new Map<string, UsageJson[]>();
  for (const row of usage) {
    const key = by === 'lock' ? row.mac : row.month;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups].map(([key, rows]) =>
    by === 'lock'
      ? { mac: key, months: new Set(rows.map(({ month }) => month)).size, ...addAll(rows) }
      : { month: key, locks: new Set(rows.map((row) => row.mac)).size, ...addAll(rows) },
  );
}

function addAll(rows: readonly Counts[]): Counts {
  const sum = (countOf: (row: Counts) => number): number => rows.reduce((total, row) => total + countOf(row), 0);
  return {
    messages: sum((row) => row.messages),
    connections: sum((row) => row.connections),
    bytes: sum((row) => row.bytes),
    bytes_up: sum((row) => row.bytes_up),
    bytes_down: sum((row) => row.bytes_down),
  };
}

function printRows(rows: readonly UsageRow[], total: Counts): void {
  // Whether any row has a value; `simulated: false` does not count, because BILLED is only of interest if a lock is.
  const has = (name: keyof UsageRow): boolean => rows.some((row) => row[name] !== undefined && row[name] !== false);
  const isTotal = (row: UsageRow): boolean => row === total;
  const names = (['mac', 'month', 'locks', 'months'] as const).filter(has);
  const columns: Column<UsageRow>[] = [
    ...names.map((name, index) => ({
      title: name.toUpperCase(),
      show: (row: UsageRow) => (isTotal(row) && index === 0 ? 'TOTAL' : String(row[name] ?? '')),
      neverCut: true,
    })),
    { title: 'BYTES', show: (row) => byteText(row.bytes), neverCut: true, right: true },
    { title: 'MESSAGES', show: (row) => row.messages.toLocaleString('en'), right: true },
    ...(has('simulated') ? [{ title: 'BILLED', show: (row: UsageRow) => billedText(row, isTotal(row)) }] : []),
    { title: 'CONNECTIONS', show: (row) => row.connections.toLocaleString('en'), optional: true, right: true },
    ...(has('merchant') ? [{ title: 'MERCHANT', show: (row: UsageRow) => row.merchant ?? '', optional: true }] : []),
    { title: 'UP', show: (row) => byteText(row.bytes_up), optional: true, right: true },
    { title: 'DOWN', show: (row) => byteText(row.bytes_down), optional: true, right: true },
  ];
  const rowsAndTotal = rows.length > 1 ? [...rows, total] : rows;
  const width = barWidth(rowsAndTotal, columns);
  const maxBytes = maxOf(rows, ({ bytes }) => bytes);
  // The bar comes after BYTES, which follows the names.
  const barIndex = names.length + 1;
  if (width > 0)
    columns.splice(barIndex, 0, { title: '', show: (row) => (isTotal(row) ? '' : bar(row.bytes, maxBytes, width)) });
  printTable(rows, columns, rows.length > 1 ? total : undefined);
}

function billedText({ simulated }: UsageRow, isTotal: boolean): string {
  if (isTotal) return '';
  return simulated === true ? 'no: simulated' : 'yes';
}

/** The width of the bar; 0 in a pipe, or if there is no room. */
function barWidth(rows: readonly UsageRow[], columns: readonly Column<UsageRow>[]): number {
  const room = terminalWidth();
  if (!Number.isFinite(room)) return 0;
  const needed = columns.filter(({ optional }) => optional !== true);
  // Without colours, whose escape codes would be counted.
  const output = {
    room: Number.POSITIVE_INFINITY,
    paint: (_style: CellStyle, text: string) => text,
    clean: sanitizeLine,
  };
  const widest = maxOf(linesOfTable(rows, needed, output), widthOf);
  const width = Math.min(Math.floor((room - widest) * BAR_WIDTH_FRACTION), MAX_BAR_WIDTH);
  return width < MIN_BAR_WIDTH ? 0 : width;
}
