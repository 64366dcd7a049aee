/**
 * Runs one command line, from its words to its exit code: builds the needed part of the command tree, runs the command,
 * and reports errors on stderr. main.ts does this once per process; tests do it many times in one.
 */

import { calledGroups, makeProgram } from '../program.js';
import { EXIT_CODE, exitCodeOf } from './exit-codes.js';
import { printNote, sanitizeLine } from './output.js';

/** Runs the command line. Sets `process.exitCode` (interfaces.md §4) after an error. */
export async function runCommandLine(words: readonly string[]): Promise<void> {
  try {
    const program = await makeProgram(calledGroups(words));
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    process.exitCode = await reportError(error);
  }
}

/** Prints the error, unless commander has. Returns the exit code. */
async function reportError(error: unknown): Promise<number> {
  const { code } = error as { code?: unknown };
  // commander has already printed the error, the help or the version.
  if (typeof code === 'string' && code.startsWith('commander.'))
    return (error as { exitCode: number }).exitCode === 0 ? EXIT_CODE.done : EXIT_CODE.badInput;
  const exitCode = exitCodeOf(error);
  if (exitCode === EXIT_CODE.bug && !(await isStoreFailure(error)))
    printNote(`lockgate: internal error: ${(error as Error).stack ?? String(error)}`);
  else printNote(sanitizeLine(`lockgate: ${(error as Error).message}`));
  return exitCode;
}

/** Whether the store failed, such as on a full disk: the operator then needs the message, not a stack trace. */
async function isStoreFailure(error: unknown): Promise<boolean> {
  const { StoreFailure } = await import('../../gateway/store/contract/errors.js');
  return error instanceof StoreFailure;
}
