/** Prints monthly statements, which the gateway has computed, as tables. */
import type { Statement } from '../../../gateway/usage/statement.js';
import { paint, print, sanitizeLine, terminalWidth } from '../../terminal/output.js';
import { type Column, printTable } from '../../terminal/table.js';
import { widthOf } from '../../terminal/text-width.js';
import { wrapWords } from '../../terminal/word-wrap.js';
import { byteText } from './text.js';

/**
 * Prints each statement: its price plan, a line per lock, corrections (usage of earlier months that was counted late),
 * totals and notes.
 */
export function printStatements(statements: readonly Statement[]): void {
  for (const [index, statement] of statements.entries()) {
    if (index > 0) print('');
    printStatement(statement);
  }
}

/** A row of the table: a line, a correction or the total of a statement. */
interface Row {
  readonly name: string;
  readonly entry: Statement['lines'][0] | Statement['corrections'][0] | Statement['totals'];
  /** The text about the lock's SIM; of a correction the month; of the total how many SIMs are active. */
  readonly sim: string;
  /** Null without a price plan. */
  readonly amount: string | null;
}

function printStatement(statement: Statement): void {
  const { merchant, month, closed_at: closedAt, plan, lines, corrections, totals } = statement;
  const currency = plan?.currency ?? '';
  print(`${paint('bold', `Statement ${month}`)}  ${sanitizeLine(merchant)}  closed ${closedAt}`);
  printSentences(
    plan === null
      ? 'No price plan: nothing is charged.'
      : `${plan.per_mb} ${currency} per MB (${plan.bytes_per_mb.toLocaleString('en')} bytes), ` +
          `${plan.per_sim} ${currency} per active SIM; ${plan.rounding}.`,
  );
  print('');
  const rows: Row[] = [
    ...lines.map((line) => ({ name: line.mac, entry: line, sim: simText(line), amount: line.amount })),
    ...corrections.map((entry) => ({ name: entry.mac, entry, sim: `late, of ${entry.month}`, amount: entry.amount })),
  ];
  const total = { name: 'TOTAL', entry: totals, sim: `${totals.active_sims} active`, amount: totals.amount };
  const columns: readonly Column<Row>[] = [
    { title: 'LOCK', show: (row) => row.name },
    { title: 'SIM', show: (row) => row.sim },
    { title: 'MESSAGES', show: (row) => row.entry.messages.toLocaleString('en'), right: true },
    { title: 'CONNECTIONS', show: (row) => row.entry.connections.toLocaleString('en'), optional: true, right: true },
    { title: 'UP', show: (row) => byteText(row.entry.bytes_up), optional: true, right: true },
    { title: 'DOWN', show: (row) => byteText(row.entry.bytes_down), optional: true, right: true },
    { title: 'BYTES', show: (row) => row.entry.bytes.toLocaleString('en'), neverCut: true, right: true },
    { title: 'AMOUNT', show: (row) => row.amount ?? '–', neverCut: true, right: true },
  ];
  printTable(rows, columns, total);
  // `total` is `amount` rounded to what can be paid.
  if (totals.total !== null) print(paint('bold', `\nTo pay: ${totals.total} ${currency}`));
  print('');
  if (statement.not_billed.simulated_locks > 0)
    printSentences(
      `Not billed: ${statement.not_billed.bytes} bytes of ${statement.not_billed.simulated_locks} simulated locks.`,
    );
  for (const each of statement.notes) printSentences(each, 'dim');
}

/** Prints a text wrapped to the terminal; in a pipe as one line. */
function printSentences(text: string, style?: 'dim'): void {
  const lines = wrapWords(text, terminalWidth(), widthOf);
  for (const line of lines) print(style === undefined ? line : paint(style, line));
}

function simText(line: Statement['lines'][0]): string {
  if (!line.active) return '–';
  return line.activated_in_month ? `active since ${line.activated_at?.slice(0, 10)}` : 'active';
}
