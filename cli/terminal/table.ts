/**
 * Formats tables that fit the terminal. A table that is too wide is narrowed in these steps, until it fits: drop
 * optional columns (the last first), move columns below the rows, wrap titles, wrap prose, cut long cells, print each
 * row as a block of lines. The first column is never cut, nor is any column below {@link MIN_CUT_WIDTH}: half a word
 * would be misleading.
 */
import { paint, print, sanitizeLine, terminalWidth } from './output.js';
import { cutToWidth, maxOf, widestWordWidth, widthOf } from './text-width.js';
import { wrapWords } from './word-wrap.js';

/** The style of a cell, if the terminal takes colours. */
export type CellStyle = 'bold' | 'dim' | 'red' | 'green' | 'yellow';

/** What a state means for the reader: `good`, `bad` (it failed), `warn` (look at it), `alarm` (look at it at once). */
export type Mark = 'good' | 'bad' | 'warn' | 'alarm';

/** The sign before a marked cell, which is also there without colours. */
const SIGNS: Readonly<Record<Mark, string>> = { good: '✓', bad: '✗', warn: '!', alarm: '!' };
const MARK_STYLES: Readonly<Record<Mark, CellStyle>> = {
  good: 'green',
  bad: 'red',
  warn: 'yellow',
  alarm: 'red',
};

/** The marks of credentials, by their states. */
export const CREDENTIAL_MARKS: Readonly<Record<string, Mark>> = { active: 'good', expired: 'warn', revoked: 'bad' };

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly show: (row: Row) => string;
  /** Whether to drop the column if the terminal is too narrow; the last optional column goes first. */
  readonly optional?: boolean;
  /** Whether to wrap the cells instead of cutting them, for sentences. */
  readonly prose?: boolean;
  /** Whether never to cut the cells, for ids and MACs. */
  readonly neverCut?: boolean;
  /**
   * Whether the cells are printed on separate lines below the rows, without a title: only in a narrow terminal (for
   * long ids), or always (for text of several lines).
   */
  readonly below?: 'if-narrow' | 'always';
  /** Whether the cells are aligned at the right, for numbers and amounts. */
  readonly right?: boolean;
  /** The sign and colour of a state; undefined for a neutral one. Such cells are never cut. */
  readonly mark?: (row: Row) => Mark | undefined;
  /** The style of the cell. The text must be clear without it. */
  readonly style?: (row: Row) => CellStyle | undefined;
}

/** The width and the text functions of the output that a table is formatted for. */
export interface TableOutput {
  /** The available width in columns. */
  readonly room: number;
  readonly paint: (style: CellStyle, text: string) => string;
  /** Removes control characters from text of others. */
  readonly clean: (text: string) => string;
}

/** The number of blanks between two columns. */
const GAP = 2;
/** The line between the rows and their total. */
const RULE = '─';
/** Before cells below their rows. */
const BELOW_INDENT = '    ';
/** Cells are not cut below this width. */
const MIN_CUT_WIDTH = 12;
/** Prose is not wrapped below this width. */
const MIN_PROSE_WIDTH = 12;

/** A column with the text and width of its cells. */
interface SizedColumn<Row> {
  readonly column: Column<Row>;
  readonly cells: readonly string[];
  width: number;
}

/**
 * Prints a table that fits the terminal. In a pipe no cell is cut and no column is dropped.
 *
 * @param total a last row with the sums of all other rows, below a line
 */
export function printTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], total?: Row): void {
  for (const line of tableLines(rows, columns, terminalWidth(), total)) print(line);
}

/** The lines of a table, titles first, at most `room` columns wide if possible. */
export function tableLines<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  room: number,
  total?: Row,
): string[] {
  return linesOfTable(rows, columns, { room, paint, clean: sanitizeLine }, total);
}

/** As {@link tableLines}, but the caller says how to colour and clean cells. */
export function linesOfTable<Row>(
  summedRows: readonly Row[],
  columns: readonly Column<Row>[],
  output: TableOutput,
  total?: Row,
): string[] {
  const rows = total === undefined ? summedRows : [...summedRows, total];
  const all = columns.map((column): SizedColumn<Row> => {
    const cells = cellsOf(rows, column, output);
    return { column, cells, width: Math.max(widthOf(column.title), maxOf(cells, widthOf)) };
  });
  const needed = all.filter(({ column }) => column.below !== 'always' && column.optional !== true);
  const isNarrow = totalWidth(needed) > output.room;
  const isBelow = ({ below }: Column<Row>): boolean => below === 'always' || (below === 'if-narrow' && isNarrow);
  const below = all.filter(({ column }) => isBelow(column));
  const shown = all.filter(({ column }) => !isBelow(column));
  if (!narrowToFit(shown, output.room)) return rowBlocks(rows, all, output);
  const titles = shown.map(({ column, width }) => wrapCell(column.title, width));
  const head = rowLines(shown, titles).map((line) => output.paint('bold', line));
  const linesBelow = (row: Row): string[] => below.flatMap(({ column }) => cellBelow(column.show(row), output));
  const linesOf = (row: Row, index: number): string[] => [...cellLines(row, index, shown, output), ...linesBelow(row)];
  const body = summedRows.flatMap(linesOf);
  if (total === undefined) return [...head, ...body];
  const rule = shown.map(({ width }) => RULE.repeat(width)).join(' '.repeat(GAP));
  return [...head, ...body, output.paint('dim', rule), ...linesOf(total, summedRows.length)];
}

/** The lines of a cell below its row. */
function cellBelow(text: string, { room, paint, clean }: TableOutput): string[] {
  const lines =
    text === '' ? [] : text.split('\n').flatMap((line) => wrapCell(clean(line), room - BELOW_INDENT.length));
  return lines.map((line) => BELOW_INDENT + paint('dim', line));
}

/** The texts of a column. If any cell has a sign, cells without one are indented by its width. */
function cellsOf<Row>(rows: readonly Row[], column: Column<Row>, { clean }: TableOutput): string[] {
  const texts = rows.map((row) => clean(column.show(row)));
  const marks = rows.map((row) => column.mark?.(row));
  if (marks.every((mark) => mark === undefined)) return texts;
  return texts.map((text, index) => {
    const mark = marks[index];
    return text === '' ? '' : `${mark === undefined ? ' ' : SIGNS[mark]} ${text}`;
  });
}

function styleOf<Row>(column: Column<Row>, row: Row): CellStyle | undefined {
  const mark = column.mark?.(row);
  return mark === undefined ? column.style?.(row) : MARK_STYLES[mark];
}

/** Narrows the columns until the table fits; false if it can't. */
function narrowToFit<Row>(shown: SizedColumn<Row>[], room: number): boolean {
  for (let index = lastOptionalColumn(shown); totalWidth(shown) > room && index >= 0; index = lastOptionalColumn(shown))
    shown.splice(index, 1);
  if (totalWidth(shown) <= room) return true;
  // Wraps titles: a column is as wide as its widest cell, or as the widest word of its title.
  for (const each of shown) each.width = Math.max(widestWordWidth(each.column.title), maxOf(each.cells, widthOf));
  const prose = shown.filter(({ column }) => column.prose);
  const minProseWidth = (each: SizedColumn<Row>): number =>
    Math.max(MIN_PROSE_WIDTH, maxOf(each.cells, widestWordWidth));
  narrow(shown, prose, room, minProseWidth);
  const cuttable = shown
    .slice(1)
    .filter(({ column }) => !column.neverCut && !column.prose && column.mark === undefined);
  narrow(shown, cuttable, room, ({ column }) => Math.max(MIN_CUT_WIDTH, widestWordWidth(column.title)));
  return totalWidth(shown) <= room;
}

/** Repeatedly narrows the widest of `candidates` by one, until the table fits or all have their minimum width. */
function narrow<Row>(
  all: SizedColumn<Row>[],
  candidates: SizedColumn<Row>[],
  room: number,
  minWidth: (each: SizedColumn<Row>) => number,
): void {
  const minWidths = new Map(candidates.map((each) => [each, minWidth(each)]));
  for (let excess = totalWidth(all) - room; excess > 0; excess -= 1) {
    const [widest] = candidates
      .filter((each) => each.width > (minWidths.get(each) ?? 0))
      .sort((a, b) => b.width - a.width);
    if (widest === undefined) return;
    widest.width -= 1;
  }
}

/** The index of the last optional column; -1 if there is none. */
function lastOptionalColumn<Row>(shown: readonly SizedColumn<Row>[]): number {
  return shown.findLastIndex(({ column }) => column.optional === true);
}

function totalWidth<Row>(shown: readonly SizedColumn<Row>[]): number {
  return shown.reduce((sum, { width }) => sum + width, GAP * (shown.length - 1));
}

/** The lines of one row of the table: prose cells are wrapped, other cells are cut. */
function cellLines<Row>(row: Row, index: number, shown: readonly SizedColumn<Row>[], { paint }: TableOutput): string[] {
  const cells = shown.map(({ column, cells, width }) => {
    const text = cells[index] ?? '';
    return column.prose ? wrapCell(text, width) : [cutToWidth(text, width)];
  });
  return rowLines(shown, cells, (text, columnIndex) => {
    const column = shown[columnIndex]?.column;
    const style = column && styleOf(column, row);
    return style === undefined ? text : paint(style, text);
  });
}

/**
 * Lays out a row whose cells have one or more lines each. `applyStyle` colours a text of the column with this index.
 */
function rowLines<Row>(
  shown: readonly SizedColumn<Row>[],
  cells: readonly (readonly string[])[],
  applyStyle: (text: string, columnIndex: number) => string = (text) => text,
): string[] {
  const height = Math.max(1, ...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) => {
    const parts = shown.map(({ column, width }, index) => {
      const text = cells[index]?.[line] ?? '';
      const blanks = ' '.repeat(Math.max(width - widthOf(text), 0));
      if (text === '') return blanks;
      return column.right ? blanks + applyStyle(text, index) : applyStyle(text, index) + blanks;
    });
    return parts.join(' '.repeat(GAP)).trimEnd();
  });
}

/** For a terminal that is too narrow for a table: prints each row as lines of title and cell. */
function rowBlocks<Row>(
  rows: readonly Row[],
  shown: readonly SizedColumn<Row>[],
  { room, paint }: TableOutput,
): string[] {
  const titleWidth = Math.max(...shown.map(({ column }) => widthOf(column.title)));
  return rows.flatMap((row, index) => {
    const lines = shown.flatMap(({ column, cells }) => {
      const [first = '', ...more] = wrapCell(cells[index] ?? '', Math.max(room - titleWidth - GAP, MIN_CUT_WIDTH));
      const style = styleOf(column, row);
      const applyStyle = (text: string): string => (style === undefined ? text : paint(style, text));
      const title = paint('bold', column.title) + ' '.repeat(titleWidth - widthOf(column.title) + GAP);
      const gap = ' '.repeat(titleWidth + GAP);
      return [`${title}${applyStyle(first)}`.trimEnd(), ...more.map((line) => gap + applyStyle(line))];
    });
    return index === 0 ? lines : ['', ...lines];
  });
}

/** Wraps a cell's text to its column. */
function wrapCell(text: string, width: number): string[] {
  return wrapWords(text, width, widthOf);
}
