/**
 * Output of commands: results go to stdout, everything else to stderr. Only a terminal gets colours.
 */
import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Whether colours may go to this stream (NO_COLOR, FORCE_COLOR and TERM as usual). */
export function hasColors(stream: Writable & { isTTY?: boolean }): boolean {
  if (process.env.NO_COLOR !== undefined && process.env.NO_COLOR !== '') return false;
  if (process.env.FORCE_COLOR !== undefined && process.env.FORCE_COLOR !== '0') return true;
  return stream.isTTY === true && process.env.TERM !== 'dumb';
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 } as const;

export type Style = keyof typeof CODES;

/** The text in a style, or plain if stdout takes no colours. */
export function paint(style: Style, text: string): string {
  return hasColors(process.stdout) ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
}

/** Captured output of a command. */
export interface CapturedOutput {
  /** Lines of results and notes, in order. */
  readonly lines: string[];
  /** Documents that `--json` printed. */
  readonly documents: unknown[];
}

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

/** Whether output is being captured. */
export function isCapturing(): boolean {
  return capture !== null;
}

/** Prints one line of a result. */
export function print(line: string): void {
  if (capture !== null) capture.lines.push(...line.split('\n'));
  else process.stdout.write(`${line}\n`);
}

/**
 * Waits until the reader of stdout has taken what was printed, if it is slower than the command. Call it now and then
 * while printing very much, so that the text does not pile up in memory.
 */
export async function outputTaken(): Promise<void> {
  if (capture === null && process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
}

/** Prints one line on stderr: progress, hints, errors. */
export function note(line: string): void {
  if (capture !== null) capture.lines.push(...line.split('\n'));
  else process.stderr.write(`${line}\n`);
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

/** Replaces control characters and direction marks, so that text from others can't manipulate the terminal. */
export function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the function replaces control characters
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '\ufffd');
}
