/**
 * Output of commands: results go to stdout, everything else to stderr. Only a terminal gets colours.
 */
import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Whether colours may go to this stream, by its kind and the environment variables NO_COLOR, FORCE_COLOR and TERM. */
export function hasColors(stream: Writable & { isTTY?: boolean }): boolean {
  if (process.env.NO_COLOR !== undefined && process.env.NO_COLOR !== '') return false;
  if (process.env.FORCE_COLOR !== undefined && process.env.FORCE_COLOR !== '0') return true;
  return stream.isTTY === true && process.env.TERM !== 'dumb';
}

/** The colour codes of ANSI terminals (SGR). */
const SGR_CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 } as const;

/** A text style for {@link paint}. */
export type Style = keyof typeof SGR_CODES;

/** The text in a style, or plain if stdout takes no colours. */
export function paint(style: Style, text: string): string {
  return hasColors(process.stdout) ? `\u001b[${SGR_CODES[style]}m${text}\u001b[0m` : text;
}

/** Captured output of a command. */
export interface CapturedOutput {
  /** Lines of results and notes, in order. */
  readonly lines: string[];
  /** Documents that `--json` printed. */
  readonly documents: unknown[];
}

/** Where output goes while it is captured; null while it is printed. */
let capture: CapturedOutput | null = null;

/** Runs `command` and returns its output instead of printing it. */
export async function captureOutput(command: () => Promise<void>): Promise<CapturedOutput> {
  const captured: CapturedOutput = { lines: [], documents: [] };
  capture = captured;
  try {
    await command();
  } finally {
    capture = null;
  }
  return captured;
}

/** Whether output is being captured instead of printed. */
export function isCapturing(): boolean {
  return capture !== null;
}

/** Prints one line of a result. */
export function print(line: string): void {
  if (capture !== null) capture.lines.push(...line.split('\n'));
  else process.stdout.write(`${line}\n`);
}

/**
 * Waits until the reader of stdout has taken what was printed, if it is slower than the command. A command with much
 * output awaits this regularly, so that the text does not accumulate in memory.
 */
export async function untilStdoutDrained(): Promise<void> {
  if (capture === null && process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
}

/** Prints a line for people on stderr: progress, hints, errors. */
export function printNote(line: string): void {
  if (capture !== null) capture.lines.push(...line.split('\n'));
  else process.stderr.write(`${line}\n`);
}

/**
 * Says why a list is empty: after a filter, that nothing matches; without one, that nothing exists yet.
 *
 * @param filters the values of the command's filter flags; undefined for a flag that was not given
 * @param noMatch the sentence with a filter
 * @param nothingYet the sentence without a filter, with the command that adds the first entry
 */
export function printEmptyList(filters: readonly unknown[], noMatch: string, nothingYet: string): void {
  printNote(filters.every((filter) => filter === undefined) ? nothingYet : noMatch);
}

/** Prints a JSON document, as `--json` does; indented on a terminal. */
export function printJson(value: unknown): void {
  if (capture !== null) capture.documents.push(value);
  else print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0));
}

/** Prints one JSON line of a stream. */
export function printJsonLine(value: unknown): void {
  print(JSON.stringify(value));
}

/** The width of the terminal in columns; infinite in a pipe. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
}

/**
 * The text as one line: control characters, line breaks and direction marks are replaced, so that text from users and
 * devices can't manipulate the terminal.
 */
export function sanitizeLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the function replaces control characters
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '\ufffd');
}
