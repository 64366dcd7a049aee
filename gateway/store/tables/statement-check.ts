/**
 * Checks the merchants' monthly statements, for `db check`: each must add up, and the `billed_` columns of the table
 * `usage` must equal the counts of the statements. Pure: each engine reads the rows.
 */
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import type { CountsJson } from '../../usage/counts.js';
import type { Statement } from '../../usage/statement.js';

/** Reports a damaged place: its table, its key, and what is wrong, as a sentence. */
type ReportDamage = (table: string, row: string, what: string) => void;

/** The counts of a lock's use: columns of the table `usage`, and members of a statement. */
const COUNTS = ['messages_up', 'messages_down', 'connections', 'bytes_up', 'bytes_down'] as const;

type Count = (typeof COUNTS)[number];
type Counts = Record<Count, number>;

interface StatementRow {
  readonly merchant_id: number;
  readonly month: string;
  readonly body: string;
}

type BilledRow = Counts & { readonly merchant_id: number; readonly month: string; readonly mac: Mac };

/** What a check reads of a store. */
export interface StatementRows {
  readonly statements: readonly StatementRow[];
  readonly overbilled: readonly BilledRow[];
  readonly billed: readonly BilledRow[];
}

const isOverbilled = COUNTS.map((count) => `billed_${count} > ${count}`).join(' OR ');
const billedSums = COUNTS.map((count) => `sum(billed_${count}) AS ${count}`).join(', ');

/** The statements in SQL that read them, in every engine. Simulated locks are not billed: they are on no statement. */
export const STATEMENT_READS: Readonly<Record<keyof StatementRows, string>> = {
  statements: 'SELECT merchant_id, month, body FROM statement',
  overbilled: `SELECT month, mac, merchant_id FROM usage WHERE ${isOverbilled}`,
  billed: `SELECT month, mac, merchant_id, ${billedSums} FROM usage WHERE simulated = 0
    GROUP BY month, mac, merchant_id`,
};

/** Checks all statements and all counts. Returns how many rows were checked. */
export function checkStatements({ statements, overbilled, billed }: StatementRows, damage: ReportDamage): number {
  /** The counts that statements have, by {@link keyOf}. */
  const statementCounts = new Map<string, Counts>();
  for (const row of statements) {
    const place = `merchant ${row.merchant_id}, ${row.month}`;
    try {
      addStatement(damage, row, place, statementCounts);
    } catch (error) {
      if (!(error instanceof SyntaxError) && !(error instanceof TypeError)) throw error;
      damage('statement', place, 'it can’t be read as a statement');
    }
  }
  for (const row of overbilled) damage('usage', keyOf(row), 'its billed counts exceed its counts');
  for (const row of billed) {
    const onStatements = statementCounts.get(keyOf(row));
    const wrong = COUNTS.filter((count) => row[count] !== (onStatements?.[count] ?? 0));
    if (wrong.length > 0) damage('usage', keyOf(row), `its billed ${wrong.join(', ')} differ from the statements`);
    statementCounts.delete(keyOf(row));
  }
  for (const [key, counts] of statementCounts)
    if (COUNTS.some((count) => counts[count] !== 0)) damage('statement', key, 'it bills usage that was never counted');
  return statements.length + billed.length;
}

/** Names the use of one lock in one month under one merchant. */
function keyOf({ merchant_id, month, mac }: { merchant_id: number; month: string; mac: string }): string {
  return `merchant ${merchant_id}, ${month}, ${mac}`;
}

/** Adds the counts of a statement to `statementCounts`, and reports totals that don't add up. */
function addStatement(
  damage: ReportDamage,
  row: StatementRow,
  place: string,
  statementCounts: Map<string, Counts>,
): void {
  const { month, lines, corrections, totals } = JSON.parse(row.body) as Statement;
  if (month !== row.month) damage('statement', place, `its content is for ${month}`);
  const entries = [...lines.map((line) => ({ ...line, month: row.month })), ...corrections];
  for (const count of COUNTS) {
    const sum = entries.reduce((total, entry) => total + entry[count], 0);
    if (sum !== totals[count])
      damage('statement', place, `its ${count} add up to ${sum}, but its total is ${totals[count]}`);
  }
  for (const entry of entries) {
    const mac = parseMac(entry.mac);
    if (!mac.ok) damage('statement', place, mac.error.message);
    else add(statementCounts, keyOf({ merchant_id: row.merchant_id, month: entry.month, mac: mac.value }), entry);
  }
}

/** Adds counts to those that the key has so far. */
function add(countsByKey: Map<string, Counts>, key: string, added: CountsJson): void {
  const before = countsByKey.get(key);
  const counts = COUNTS.map((count) => [count, (before?.[count] ?? 0) + added[count]]);
  countsByKey.set(key, Object.fromEntries(counts) as Counts);
}
