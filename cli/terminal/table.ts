/**
 * Tables that fit the terminal. If a table is too wide, these steps follow in turn: optional columns are dropped (the
 * last first), titles are wrapped, prose is wrapped, long cells are cut, and finally each row becomes a block of lines.
 * The first column is never cut, and neither is a short word: half a state would be misleading.
 */
import { oneLine, paint, print, terminalWidth } from './output.js';
import { cutToWidth, longestWord, widthOf } from './text-width.js';
import { wrapWords } from './word-wrap.js';

/** The style of a cell, if the terminal takes colours. */
export type CellStyle = 'bold' | 'dim' | 'red' | 'green' | 'yellow';

/** A column of a table. */
export interface Column<Row> {
  readonly title: string;
  readonly show: (row: Row) => string;
  /** Dropped if the terminal is too narrow; the last optional column goes first. */
  readonly optional?: boolean;
  /** Sentences, which are wrapped instead of cut. */
  readonly prose?: boolean;
  /** Never cut, for ids and MACs; the first column never is either. */
  readonly whole?: boolean;
  /** The style of the cell, which adds nothing that the text does not say. */
  readonly style?: (row: Row) => CellStyle | undefined;
}

/** Where a table is shown. */
export interface TablePlace {
  /** In columns. */
  readonly room: number;
  readonly paint: (style: CellStyle, text: string) => string;
  /** Removes control characters from foreign text. */
  readonly clean: (text: string) => string;
}

const GAP = 2;
/** Cells are not cut below this width. */
const LEAST_CUT = 12;
/** Prose is not wrapped below this width. */
const LEAST_PROSE = 12;

interface Shown<Row> {
  readonly column: Column<Row>;
  readonly cells: readonly string[];
  width: number;
}

/** Prints a table that fits the terminal. In a pipe nothing is cut or left out. */
export function printTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
  for (const line of tableLines(rows, columns, terminalWidth())) print(line);
}

/** The lines of a table, titles first, at most `room` columns wide if possible. */
export function tableLines<Row>(rows: readonly Row[], columns: readonly Column<Row>[], room: number): string[] {
  return linesOfTable(rows, columns, { room, paint, clean: oneLine });
}

/** As {@link tableLines}, with the caller's own way to colour and clean cells. */
export function linesOfTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], place: TablePlace): string[] {
  const shown = columns.map((column): Shown<Row> => {
    const cells = rows.map((row) => place.clean(column.show(row)));
    return { column, cells, width: Math.max(widthOf(column.title), ...cells.map(widthOf)) };
  });
  if (!fit(shown, place.room)) return blocks(rows, shown, place);
  const titles = shown.map(({ column, width }) => fold(column.title, width));
  const head = rowLines(shown, titles).map((line) => place.paint('bold', line));
  return [...head, ...rows.flatMap((row, index) => cellLines(row, index, shown, place))];
}

/** Narrows the columns until the table fits; false if it can't. */
function fit<Row>(shown: Shown<Row>[], room: number): boolean {
  for (let last = lastOptional(shown); total(shown) > room && last >= 0; last = lastOptional(shown))
    shown.splice(last, 1);
  if (total(shown) <= room) return true;
  for (const each of shown) each.width = Math.max(longestWord(each.column.title), ...each.cells.map(widthOf));
  const prose = shown.filter(({ column }) => column.prose);
  const words = (each: Shown<Row>): number => Math.max(LEAST_PROSE, ...each.cells.map(longestWord));
  narrow(shown, prose, room, words);
  const cut = shown.slice(1).filter(({ column }) => !column.whole && !column.prose);
  narrow(shown, cut, room, ({ column }) => Math.max(LEAST_CUT, longestWord(column.title)));
  return total(shown) <= room;
}

/** Narrows the widest of `some`, a column width at a time, down to what each needs. */
function narrow<Row>(all: Shown<Row>[], some: Shown<Row>[], room: number, least: (each: Shown<Row>) => number): void {
  const floors = new Map(some.map((each) => [each, least(each)]));
  for (let over = total(all) - room; over > 0; over -= 1) {
    const [widest] = some.filter((each) => each.width > (floors.get(each) ?? 0)).sort((a, b) => b.width - a.width);
    if (widest === undefined) return;
    widest.width -= 1;
  }
}

function lastOptional<Row>(shown: readonly Shown<Row>[]): number {
  return shown.findLastIndex(({ column }) => column.optional === true);
}

function total<Row>(shown: readonly Shown<Row>[]): number {
  return shown.reduce((sum, { width }) => sum + width, GAP * (shown.length - 1));
}

function cellLines<Row>(row: Row, index: number, shown: readonly Shown<Row>[], { paint }: TablePlace): string[] {
  const cells = shown.map(({ column, cells, width }) => {
    const text = cells[index] ?? '';
    return column.prose ? fold(text, width) : [cutToWidth(text, width)];
  });
  return rowLines(shown, cells, (text, at) => {
    const style = shown[at]?.column.style?.(row);
    return style === undefined ? text : paint(style, text);
  });
}

/** Cells of one line or more, side by side. */
function rowLines<Row>(
  shown: readonly Shown<Row>[],
  cells: readonly (readonly string[])[],
  dress: (text: string, at: number) => string = (text) => text,
): string[] {
  const height = Math.max(1, ...cells.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) => {
    const parts = shown.map(({ width }, at) => {
      const text = cells[at]?.[line] ?? '';
      const blanks = ' '.repeat(Math.max(width - widthOf(text), 0));
      return text === '' ? blanks : dress(text, at) + blanks;
    });
    return parts.join(' '.repeat(GAP)).trimEnd();
  });
}

/** For a terminal that is too narrow for a table: each row as lines of title and cell. */
function blocks<Row>(rows: readonly Row[], shown: readonly Shown<Row>[], { room, paint }: TablePlace): string[] {
  const titles = Math.max(...shown.map(({ column }) => widthOf(column.title)));
  return rows.flatMap((row, index) => {
    const lines = shown.flatMap(({ column, cells }) => {
      const [first = '', ...more] = fold(cells[index] ?? '', Math.max(room - titles - GAP, LEAST_CUT));
      const style = column.style?.(row);
      const dress = (text: string): string => (style === undefined ? text : paint(style, text));
      const title = paint('bold', column.title) + ' '.repeat(titles - widthOf(column.title) + GAP);
      const gap = ' '.repeat(titles + GAP);
      return [`${title}${dress(first)}`.trimEnd(), ...more.map((line) => gap + dress(line))];
    });
    return index === 0 ? lines : ['', ...lines];
  });
}

function fold(text: string, width: number): string[] {
  return wrapWords(text, width, widthOf);
}
