/**
 * Tables of the command line: what matters is never cut. Long ids go below their rows, states have a sign that is there
 * without colours too, numbers are aligned at the right, and a line sets the total apart.
 */
import t from 'tap';
import { type Column, linesOfTable, tableLines } from '../../../cli/terminal/table.js';

interface Row {
  readonly id: string;
  readonly state: string;
  readonly count: number;
  readonly note: string;
}

const ROWS: readonly Row[] = [
  { id: 'evt_A4C138F0E1D2_1_41_12', state: 'dead', count: 1, note: 'first\nsecond' },
  { id: 'evt_A4C138F0E1D2_1_41_9', state: 'queued', count: 1_200, note: '' },
];
const COLUMNS: readonly Column<Row>[] = [
  { title: 'STATE', show: ({ state }) => state, mark: ({ state }) => (state === 'dead' ? 'bad' : undefined) },
  { title: 'COUNT', show: ({ count }) => String(count), right: true },
  { title: 'EVENT', show: ({ id }) => id, below: 'if-narrow' },
];

t.test('a sign before a state, and as many blanks before the others; numbers at the right', async (t) => {
  t.strictSame(tableLines(ROWS, COLUMNS, Number.POSITIVE_INFINITY), [
    'STATE     COUNT  EVENT',
    '✗ dead        1  evt_A4C138F0E1D2_1_41_12',
    '  queued   1200  evt_A4C138F0E1D2_1_41_9',
  ]);
});

t.test('a colour with the sign, if the terminal takes colours', async (t) => {
  const output = {
    room: 80,
    paint: (style: string, text: string) => `<${style}>${text}`,
    clean: (text: string) => text,
  };
  t.match(linesOfTable(ROWS, COLUMNS, output)[1], /^<red>✗ dead/);
});

t.test('an id that does not fit goes below its row and is not cut', async (t) => {
  t.strictSame(tableLines(ROWS, COLUMNS, 30), [
    'STATE     COUNT',
    '✗ dead        1',
    '    evt_A4C138F0E1D2_1_41_12',
    '  queued   1200',
    '    evt_A4C138F0E1D2_1_41_9',
  ]);
});

t.test('an optional column goes before a needed one moves; text of several lines is always below', async (t) => {
  const notes: Column<Row> = { title: 'NOTE', show: ({ note }) => note, below: 'always' };
  const optional: Column<Row> = { title: 'OPTIONAL', show: () => 'x'.repeat(20), optional: true };
  t.strictSame(tableLines(ROWS, [...COLUMNS, optional, notes], 50), [
    'STATE     COUNT  EVENT',
    '✗ dead        1  evt_A4C138F0E1D2_1_41_12',
    '    first',
    '    second',
    '  queued   1200  evt_A4C138F0E1D2_1_41_9',
  ]);
});

t.test('a line sets the total apart', async (t) => {
  const [first, second] = ROWS as [Row, Row];
  t.strictSame(tableLines([first], COLUMNS.slice(0, 2), 80, { ...second, state: 'TOTAL' }), [
    'STATE    COUNT',
    '✗ dead       1',
    '───────  ─────',
    '  TOTAL   1200',
  ]);
});
