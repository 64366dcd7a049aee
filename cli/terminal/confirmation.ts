/** Questions before what can't be undone: asked on a terminal alone, and answered elsewhere by a flag. */
import { LockgateError } from '../../proto/errors.js';

/** What is asked, and what a program says instead. */
export interface Confirmation {
  /** Ends with what to type. */
  readonly question: string;
  readonly expected: string;
  /** Where nobody can be asked: what would happen, and which flag says that it is meant. */
  readonly otherwise: string;
  /** Where the answer is another one: what was not done. */
  readonly undone: string;
}

/** Exit code of a question that is answered by Ctrl-C. */
const INTERRUPTED = 130;

/** @throws LockgateError `input-unconfirmed` where nobody is there to ask, or the answer is another */
export async function confirm({ question, expected, otherwise, undone }: Confirmation): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new LockgateError('input-unconfirmed', otherwise);
  const { createInterface } = await import('node:readline/promises');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on('SIGINT', () => {
    process.stderr.write('\n');
    process.exit(INTERRUPTED);
  });
  // Ctrl-D is an answer too: none.
  const closed = new Promise<string>((resolve) => terminal.on('close', () => resolve('')));
  const answer = await Promise.race([terminal.question(question), closed]);
  terminal.close();
  if (answer.trim().toLowerCase() === expected.toLowerCase()) return;
  if (answer === '') process.stderr.write('\n');
  throw new LockgateError('input-unconfirmed', undone);
}
