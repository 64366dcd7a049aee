/**
 * Runs one command line, from its words to its exit code: builds the part of the command tree that is called, runs it,
 * and reports errors on stderr. main.ts does this once per process; tests do it many times in one.
 */

import { calledGroups, makeProgram } from '../program.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import { note, oneLine } from './output.js';

/** Runs it; sets `process.exitCode` (interfaces.md §4) if something went wrong. */
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
  // commander has already printed the error, the help or the version.
  if (typeof code === 'string' && code.startsWith('commander.'))
    return (error as { exitCode: number }).exitCode === 0 ? EXIT.done : EXIT.input;
  const exitCode = exitCodeOf(error);
  if (exitCode === EXIT.broken && !(await isStoreFailure(error)))
    note(`lockgate: internal error: ${(error as Error).stack ?? String(error)}`);
  else note(oneLine(`lockgate: ${(error as Error).message}`));
  return exitCode;
}

/** For a failing store the operator needs the message, not our stack trace. */
async function isStoreFailure(error: unknown): Promise<boolean> {
  const { StoreFailure } = await import('../../gateway/store/contract/errors.js');
  return error instanceof StoreFailure;
}
