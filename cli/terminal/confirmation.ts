/** Confirmation of what can't be undone: a question on a terminal, a flag elsewhere. */
import { LockgateError } from '../../proto/errors.js';

/** The question, and the messages without it. */
export interface Confirmation {
  /** Ends with the expected answer. */
  readonly question: string;
  readonly expected: string;
  /** Without a terminal: what would happen, and which flag confirms it. */
  readonly otherwise: string;
  /** For any other answer: what was not done. */
  readonly undone: string;
}

/** The exit code for Ctrl-C at the question. */
const INTERRUPTED = 130;

/** @throws LockgateError `input-unconfirmed` without a terminal, or for any other answer */
export async function confirm({ question, expected, otherwise, undone }: Confirmation): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new LockgateError('input-unconfirmed', otherwise);
  const { createInterface } = await import('node:readline/promises');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on('SIGINT', () => {
    process.stderr.write('\n');
    process.exit(INTERRUPTED);
  });
  // Ctrl-D is an empty answer.
  const closed = new Promise<string>((resolve) => terminal.on('close', () => resolve('')));
  const answer = await Promise.race([terminal.question(question), closed]);
  terminal.close();
  if (answer.trim().toLowerCase() === expected.toLowerCase()) return;
  if (answer === '') process.stderr.write('\n');
  throw new LockgateError('input-unconfirmed', undone);
}
