/** Asks for confirmation before an action that can't be undone. Without a terminal a flag must confirm the action. */
import { LockgateError } from '../../proto/errors.js';

/** The question and the error messages. */
export interface Confirmation {
  /** Asks for the expected answer, such as `Type yes: `. */
  readonly question: string;
  /** The answer that confirms; upper and lower case are equal. */
  readonly expected: string;
  /** The error without a terminal: what would happen, and which flag confirms. */
  readonly withoutTerminal: string;
  /** The error for any other answer: what was not done. */
  readonly notDone: string;
}

/** The exit code after Ctrl-C. */
const INTERRUPTED_EXIT_CODE = 130;

/** Asks the question. @throws LockgateError `input-unconfirmed` without a terminal, or for an unexpected answer */
export async function confirm({ question, expected, withoutTerminal, notDone }: Confirmation): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new LockgateError('input-unconfirmed', withoutTerminal);
  const { createInterface } = await import('node:readline/promises');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on('SIGINT', () => {
    process.stderr.write('\n');
    process.exit(INTERRUPTED_EXIT_CODE);
  });
  // Ctrl-D counts as an empty answer.
  const closed = new Promise<string>((resolve) => terminal.on('close', () => resolve('')));
  const answer = await Promise.race([terminal.question(question), closed]);
  terminal.close();
  if (answer.trim().toLowerCase() === expected.toLowerCase()) return;
  if (answer === '') process.stderr.write('\n');
  throw new LockgateError('input-unconfirmed', notDone);
}
