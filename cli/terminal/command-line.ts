/**
 * One command line, from its words to its exit code: builds as much of the tree as is called, runs it, and says on
 * stderr what went wrong. It is what main.ts does for a process, and can be done many times in one.
 */

import { calledGroups, makeProgram } from '../program.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import { note, oneLine } from './output.js';

/** Runs it; how it ended is in `process.exitCode` (interfaces.md §4), left as it is where nothing went wrong. */
export async function runCommandLine(words: readonly string[]): Promise<void> {
  try {
    const program = await makeProgram(calledGroups(words));
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    process.exitCode = await report(error);
  }
}

async function report(error: unknown): Promise<number> {
  const { code } = error as { code?: unknown };
  // commander has printed its own sentence, or the help or version that was asked for.
  if (typeof code === 'string' && code.startsWith('commander.'))
    return (error as { exitCode: number }).exitCode === 0 ? EXIT.done : EXIT.input;
  const exitCode = exitCodeOf(error);
  if (exitCode === EXIT.broken && !(await isStoreFailure(error)))
    note(`lockgate broke: ${(error as Error).stack ?? String(error)}`);
  else note(oneLine(`lockgate: ${(error as Error).message}`));
  return exitCode;
}

/** Of a store that fails the operator needs the sentence, and not where in our code it was noticed. */
async function isStoreFailure(error: unknown): Promise<boolean> {
  const { StoreFailure } = await import('../../gateway/store/contract/errors.js');
  return error instanceof StoreFailure;
}
