/** Reads the shell's input line by line: from a person at a terminal, or from a script. */
import { clearLine, createInterface, cursorTo, type Interface } from 'node:readline';
import { LockgateError } from '../../../../proto/errors.js';
import type { Interruption } from '../../../terminal/interrupt.js';
import { paint, printNote, sanitizeLine } from '../../../terminal/output.js';
import { MAX_HISTORY_LINES, readHistory, writeHistory } from './history.js';
import type { ShellSession } from './session.js';
import type { ShellTranscript } from './transcript.js';
import { completionsOf } from './words.js';

/** The exit code after Ctrl-C: 128 plus the number of the signal SIGINT, 2. */
const INTERRUPTED_EXIT_CODE = 130;

/**
 * Reads lines from the standard input until its end, without prompts, and stops at the first error.
 *
 * @throws LockgateError `input-…` with the number of the line
 */
export async function runScript(session: ShellSession, interrupted: Interruption): Promise<void> {
  const { signal } = interrupted;
  const lines = createInterface({ input: process.stdin, terminal: false });
  signal.addEventListener('abort', () => lines.close(), { once: true });
  let number = 0;
  for await (const line of lines) {
    number += 1;
    if (signal.aborted) break;
    try {
      if (!(await session.run(line, signal))) break;
    } catch (error) {
      if (!(error instanceof LockgateError)) throw error;
      throw new LockgateError(error.code, `line ${number}: ${error.message}`);
    }
  }
  lines.close();
  if (signal.aborted) process.exitCode = interrupted.exitCode;
}

/** What {@link runTerminal} needs. */
export interface TerminalOptions {
  readonly session: ShellSession;
  readonly transcript: ShellTranscript;
  readonly keepsHistory: boolean;
  /** SIGTERM or a similar signal, which ends the shell. */
  readonly interrupted: Interruption;
}

/** Reads typed lines until Ctrl-D, `quit`, or Ctrl-C twice. Errors are shown, and the prompt returns. */
export async function runTerminal({ session, transcript, keepsHistory, interrupted }: TerminalOptions): Promise<void> {
  const terminal = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: paint('bold', 'lock> '),
    completer: (line: string): [string[], string] => [completionsOf(line), line],
    history: keepsHistory ? readHistory() : [],
    historySize: MAX_HISTORY_LINES,
    removeHistoryDuplicates: true,
  });
  if (keepsHistory) terminal.on('history', (lines: string[]) => writeHistory(lines));
  const prompt = new Prompt(terminal);
  transcript.wrapOutput = (output) => prompt.printAbove(output);
  interrupted.signal.addEventListener('abort', () => terminal.close(), { once: true });
  await new Promise<void>((resolve, reject) => {
    terminal.on('close', resolve);
    terminal.on('SIGINT', () => prompt.interrupt());
    terminal.on('line', (line: string) => void prompt.submit(line, session).catch(reject));
    prompt.ask();
  });
  transcript.wrapOutput = (output) => output();
  terminal.close();
  if (interrupted.signal.aborted) process.exitCode = interrupted.exitCode;
}

/** The prompt, the line that is being carried out, and lines typed meanwhile. */
class Prompt {
  readonly #terminal: Interface;
  /** Lines typed while another line is being carried out. */
  readonly #typedAhead: string[] = [];
  /** Cancels the line that is being carried out; null if there is none. */
  #cancelLine: AbortController | null = null;
  /** Whether the prompt is shown. */
  #isAsking = false;
  /** Whether the last key was Ctrl-C on an empty line. */
  #wasInterrupted = false;

  constructor(terminal: Interface) {
    this.#terminal = terminal;
  }

  /** Shows the prompt. */
  ask(): void {
    this.#isAsking = true;
    const keepsCursor = true;
    this.#terminal.prompt(keepsCursor);
  }

  /** Carries out a typed line, or stores it until the current line is done. */
  async submit(line: string, session: ShellSession): Promise<void> {
    this.#wasInterrupted = false;
    this.#typedAhead.push(line);
    if (this.#cancelLine !== null) return;
    this.#isAsking = false;
    for (let next = this.#typedAhead.shift(); next !== undefined; next = this.#typedAhead.shift()) {
      this.#cancelLine = new AbortController();
      if (!(await this.#run(next, session, this.#cancelLine.signal))) {
        this.#terminal.close();
        return;
      }
    }
    this.#cancelLine = null;
    this.ask();
  }

  /** Carries out a line, or prints what is wrong with it. Returns whether the shell continues. */
  async #run(line: string, session: ShellSession, signal: AbortSignal): Promise<boolean> {
    try {
      return await session.run(line, signal);
    } catch (error) {
      if (!(error instanceof LockgateError)) throw error;
      printNote(paint('red', sanitizeLine(error.message)));
      return true;
    }
  }

  /** Prints above the prompt. Typed text stays in the prompt. */
  printAbove(output: () => void): void {
    if (!this.#isAsking) {
      output();
      return;
    }
    const wholeLine = 0;
    cursorTo(process.stdout, 0);
    clearLine(process.stdout, wholeLine);
    output();
    const keepsCursor = true;
    this.#terminal.prompt(keepsCursor);
  }

  /** Ctrl-C cancels the line being carried out; at the prompt it clears the input; twice on an empty line it quits. */
  interrupt(): void {
    if (this.#cancelLine !== null) {
      this.#typedAhead.length = 0;
      this.#cancelLine.abort();
      return;
    }
    const isEmpty = this.#terminal.line === '';
    process.stdout.write('^C\n');
    if (isEmpty && this.#wasInterrupted) {
      process.exitCode = INTERRUPTED_EXIT_CODE;
      this.#terminal.close();
      return;
    }
    if (isEmpty) printNote('Press Ctrl-C again, or Ctrl-D, to quit.');
    this.#wasInterrupted = isEmpty;
    // Ctrl-E and Ctrl-U: clears the line without adding it to the history.
    this.#terminal.write(null, { ctrl: true, name: 'e' });
    this.#terminal.write(null, { ctrl: true, name: 'u' });
    this.ask();
  }
}
