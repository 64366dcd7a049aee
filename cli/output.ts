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
}

/**
 * Prints a table. The widest columns give way until it fits the terminal; in a pipe nothing is cut.
 */
export function printTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): void {
  const cells = rows.map((row) => columns.map((column) => oneLine(column.show(row))));
  const widths = columns.map((column, index) => {
    return Math.max(column.title.length, ...cells.map((row) => [...(row[index] ?? '')].length));
  });
  if (process.stdout.isTTY) shrink(widths, process.stdout.columns ?? 80);
  const line = (texts: readonly string[]): string => {
    return texts.map((text, index) => fit(text, widths[index] ?? 0, index === texts.length - 1)).join('  ');
  };
  print(paint('bold', line(columns.map((column) => column.title))));
  for (const row of cells) print(line(row));
}

/** What a stranger typed or sent must not move the cursor. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is to be replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');
}

const GAP = 2;
const LEAST_WIDTH = 6;

function shrink(widths: number[], room: number): void {
  const total = (): number => widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1));
  while (total() > room) {
    const widest = Math.max(...widths);
    if (widest <= LEAST_WIDTH) return;
    widths[widths.indexOf(widest)] = Math.max(LEAST_WIDTH, widest - Math.max(1, Math.min(total() - room, 4)));
  }
}

function fit(text: string, width: number, isLast: boolean): string {
  const letters = [...text];
  if (letters.length > width) return `${letters.slice(0, width - 1).join('')}…`;
  return isLast ? text : text + ' '.repeat(width - letters.length);
}
