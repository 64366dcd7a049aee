/**
 * Output of commands: results go to stdout, everything else to stderr; colours only to a terminal.
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

/** Text in a style, if stdout takes colours. */
export function paint(style: Style, text: string): string {
  return hasColors(process.stdout) ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
}

/** The captured output of a command. */
export interface Said {
  /** In order, including notes. */
  readonly lines: string[];
  /** What `--json` printed. */
  readonly documents: unknown[];
}

let listened: Said | null = null;

/** Runs `speak` and returns its output instead of printing it. */
export async function listenTo(speak: () => Promise<void>): Promise<Said> {
  const said: Said = { lines: [], documents: [] };
  listened = said;
  try {
    await speak();
  } finally {
    listened = null;
  }
  return said;
}

/** Whether output is being captured. */
export function isListenedTo(): boolean {
  return listened !== null;
}

/** One line of a result. */
export function print(line: string): void {
  if (listened !== null) listened.lines.push(...line.split('\n'));
  else process.stdout.write(`${line}\n`);
}

/** One line on stderr: progress, hints, errors. */
export function note(line: string): void {
  if (listened !== null) listened.lines.push(...line.split('\n'));
  else process.stderr.write(`${line}\n`);
}

/** One JSON document: what `--json` prints. */
export function printJson(value: unknown): void {
  if (listened !== null) listened.documents.push(value);
  else print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0));
}

/** One JSON line of a stream. */
export function printJsonLine(value: unknown): void {
  print(JSON.stringify(value));
}

/** The width of the terminal in columns; infinite in a pipe. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
}

/** Replaces control characters and direction marks, so that foreign text can't manipulate the terminal. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is to be replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '\ufffd');
}
