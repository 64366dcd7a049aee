/**
 * How the CLI speaks: results on stdout, everything else on stderr, colours on a terminal alone.
 */
import type { Writable } from 'node:stream';

/** Whether colours may go to this stream (NO_COLOR, FORCE_COLOR and TERM as usual). */
export function hasColors(stream: Writable & { isTTY?: boolean }): boolean {
  if (process.env.NO_COLOR !== undefined && process.env.NO_COLOR !== '') return false;
  if (process.env.FORCE_COLOR !== undefined && process.env.FORCE_COLOR !== '0') return true;
  return stream.isTTY === true && process.env.TERM !== 'dumb';
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 } as const;

export type Style = keyof typeof CODES;

/** Text in a style, where stdout takes colours. */
export function paint(style: Style, text: string): string {
  return hasColors(process.stdout) ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
}

/** One line of a result. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** One line beside the result: progress, hints, errors. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** One JSON document: what `--json` prints. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0));
}

/** One JSON line of a stream. */
export function printJsonLine(value: unknown): void {
  print(JSON.stringify(value));
}

/** A column of a table: its title, and what a row shows in it. */
export interface Column<Row> {
  readonly title: string;
  readonly show: (row: Row) => string;
  /** Left out where the terminal is too narrow, the last of these first. */
  readonly optional?: boolean;
}

/**
 * Prints a table. Where the terminal is too narrow, optional columns are left out, and then the widest give way; the
 * first column names the row and is never cut. In a pipe nothing is.
 */
export function printTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const room = process.stdout.isTTY ? (process.stdout.columns ?? 80) : Number.POSITIVE_INFINITY;
  const [head = '', ...lines] = tableLines(rows, columns, room);
  print(paint('bold', head));
  for (const line of lines) print(line);
}

/** The lines of a table that is at most `room` wide where that is possible, the titles first. */
export function tableLines<Row>(rows: readonly Row[], columns: readonly Column<Row>[], room: number): string[] {
  const shown = [...columns];
  const cellsOf = (row: Row): string[] => shown.map((column) => oneLine(column.show(row)));
  const widthsOf = (): number[] => {
    const cells = rows.map(cellsOf);
    return shown.map(({ title }, index) =>
      Math.max(title.length, ...cells.map((row) => [...(row[index] ?? '')].length)),
    );
  };
  let widths = widthsOf();
  for (let last = lastOptional(shown); total(widths) > room && last >= 0; last = lastOptional(shown)) {
    shown.splice(last, 1);
    widths = widthsOf();
  }
  shrink(widths, room);
  const line = (texts: readonly string[]): string => {
    return texts.map((text, index) => fit(text, widths[index] ?? 0, index === texts.length - 1)).join('  ');
  };
  return [line(shown.map(({ title }) => title)), ...rows.map((row) => line(cellsOf(row)))];
}

function lastOptional<Row>(columns: readonly Column<Row>[]): number {
  return columns.findLastIndex(({ optional }) => optional === true);
}

/** What a stranger typed or sent must not move the cursor. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is to be replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');
}

const GAP = 2;
const LEAST_WIDTH = 6;

function total(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1));
}

function shrink(widths: number[], room: number): void {
  while (total(widths) > room) {
    const widest = Math.max(...widths.slice(1));
    if (widest <= LEAST_WIDTH) return;
    widths[widths.indexOf(widest, 1)] = widest - 1;
  }
}

function fit(text: string, width: number, isLast: boolean): string {
  const letters = [...text];
  if (letters.length > width) return `${letters.slice(0, width - 1).join('')}…`;
  return isLast ? text : text + ' '.repeat(width - letters.length);
}
