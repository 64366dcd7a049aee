/**
 * Prints the coverage of traces as a table: which kinds of ping were seen in which power state. It has a row for each
 * trigger (what makes a lock send) and reason (what the ping reports), and a column for each state.
 */
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { CoverageCell } from '../../../proto/trace/coverage.js';
import { paint, print, terminalWidth } from '../../terminal/output.js';
import { printTable } from '../../terminal/table.js';

/** The width of the table with unabbreviated ping types. */
const FULL_WIDTH = 112;

/** A row of the table: a kind of ping, with its cell for each power state. */
interface Row {
  readonly trigger: string;
  readonly reason: string;
  readonly pingType: string;
  readonly cells: ReadonlyMap<string, CoverageCell>;
}

/** Prints how often each kind of ping was seen in each state, and which allowed kinds were not seen. */
export function printCoverage(cells: readonly CoverageCell[]): void {
  const rows = rowsOf(cells);
  const cellText = (row: Row, state: string): string => {
    const cell = row.cells.get(state);
    // –: not allowed and not seen; 0: allowed and not seen.
    if (cell === undefined) return '–';
    if (cell.pings === 0) return '0';
    return cell.isAllowed ? String(cell.pings) : `${cell.pings}!`;
  };
  print('');
  const isNarrow = terminalWidth() < FULL_WIDTH;
  printTable(rows, [
    { title: 'TRIGGER', show: (row) => row.trigger, optional: true },
    { title: 'REASON', show: (row) => row.reason },
    // Shortened to fit 80 columns.
    { title: 'PING', show: (row) => (isNarrow ? row.pingType.replace('_connection', '') : row.pingType) },
    ...POWER_MODEL.states.map(({ state }) => ({ title: state, show: (row: Row) => cellText(row, state) })),
  ]);
  const allowed = cells.filter((cell) => cell.isAllowed);
  const seen = allowed.filter((cell) => cell.pings > 0).length;
  print(
    paint(
      'dim',
      `${seen} of ${allowed.length} combinations that the model allows were seen; ! marks seen but not allowed.`,
    ),
  );
  print('');
}

function rowsOf(cells: readonly CoverageCell[]): Row[] {
  const rows = new Map<string, { row: Row; cells: Map<string, CoverageCell> }>();
  for (const cell of cells) {
    const key = `${cell.trigger} ${cell.reason} ${cell.pingType}`;
    let entry = rows.get(key);
    if (entry === undefined) {
      const cellsByState = new Map<string, CoverageCell>();
      entry = {
        cells: cellsByState,
        row: { trigger: cell.trigger ?? '–', reason: cell.reason, pingType: cell.pingType, cells: cellsByState },
      };
      rows.set(key, entry);
    }
    entry.cells.set(cell.state, cell);
  }
  // Pings without a trigger come last.
  return [...rows.values()].map(({ row }) => row).sort((a, b) => Number(a.trigger === '–') - Number(b.trigger === '–'));
}
