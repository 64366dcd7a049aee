/**
 * Tables of the command line. Ids and needed columns are never cut: an id that does not fit goes below its row. A bad
 * state is marked with ✗, even without colours; numbers are right-aligned; a rule separates the total.
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

// The third argument of `tableLines` is the width of the terminal, in columns.
t.test('a bad state has a ✗ before it, other states align with it, and numbers are right-aligned', async (t) => {
  t.strictSame(tableLines(ROWS, COLUMNS, Number.POSITIVE_INFINITY), [
    'STATE     COUNT  EVENT',
    '✗ dead        1  evt_A4C138F0E1D2_1_41_12',
    '  queued   1200  evt_A4C138F0E1D2_1_41_9',
  ]);
});

t.test('the ✗ and its state are red if the terminal has colours', async (t) => {
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

t.test('if there is no room, an optional column is left out first; a note is always below its row', async (t) => {
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

t.test('a rule separates the total from the rows', async (t) => {
  const [first, second] = ROWS as [Row, Row];
  t.strictSame(tableLines([first], COLUMNS.slice(0, 2), 80, { ...second, state: 'TOTAL' }), [
    'STATE    COUNT',
    '✗ dead       1',
    '───────  ─────',
    '  TOTAL   1200',
  ]);
});

t.test('a table of 150,000 rows that is too wide is narrowed like a short one', async (t) => {
  const rows = Array.from({ length: 150_000 }, () => ({ mac: 'A4:C1:38:F0:E1:D2', note: 'a note of some words' }));
  const columns: readonly Column<(typeof rows)[number]>[] = [
    { title: 'MAC', show: ({ mac }) => mac },
    { title: 'NOTE', show: ({ note }) => note },
  ];
  const lines = tableLines(rows, columns, 35);
  t.strictSame(lines.slice(0, 2), ['MAC                NOTE', 'A4:C1:38:F0:E1:D2  a note of some …']);
  t.equal(lines.length, 1 + rows.length);
});
