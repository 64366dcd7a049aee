/**
 * Runs one command line, from its words to its exit code: builds the needed part of the command tree, runs the command,
 * and reports errors on stderr. process.ts does this once per process; tests do it many times in one.
 */

import type { Command } from 'commander';
import { calledGroups, makeProgram } from '../program.js';
import { EXIT_CODE, exitCodeOf } from './exit-codes.js';
import { printNote, sanitizeLine } from './output.js';

/** A bad member of a request, named in `errors` of the gateway’s refusal or in `faults` of an error of this process. */
interface Fault {
  readonly pointer: string;
}

/** Runs the command line. Sets `process.exitCode` (interfaces.md §4) after an error. */
export async function runCommandLine(words: readonly string[]): Promise<void> {
  let called: Command | undefined;
  try {
    const program = await makeProgram(calledGroups(words));
    program.hook('preAction', (_program, command) => {
      called = command;
    });
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    process.exitCode = await reportError(error, called);
  }
}

/** Prints the error, unless commander has. Returns the exit code. */
async function reportError(error: unknown, command: Command | undefined): Promise<number> {
  const { code } = error as { code?: unknown };
  // commander has already printed the error, the help or the version.
  if (typeof code === 'string' && code.startsWith('commander.'))
    return (error as { exitCode: number }).exitCode === 0 ? EXIT_CODE.done : EXIT_CODE.badInput;
  const exitCode = exitCodeOf(error);
  if (exitCode === EXIT_CODE.bug && !(await isStoreFailure(error)))
    printNote(`lockgate: internal error: ${(error as Error).stack ?? String(error)}`);
  else printNote(sanitizeLine(`lockgate: ${await messageFor(error as Error, command)}`));
  return exitCode;
}

/** The error's sentence. An error about members of a request names the flags that set them. */
async function messageFor(error: Error, command: Command | undefined): Promise<string> {
  const { errors, faults = errors } = error as { errors?: readonly Fault[]; faults?: readonly Fault[] };
  if (faults === undefined || command === undefined) return error.message;
  const { withFlagNames } = await import('./flag-names.js');
  return withFlagNames({ sentence: error.message, pointers: faults.map(({ pointer }) => pointer) }, command);
}

/** Whether the store failed, such as on a full disk: the operator then needs the message, not a stack trace. */
async function isStoreFailure(error: unknown): Promise<boolean> {
  const { StoreFailure } = await import('../../gateway/store/contract/errors.js');
  return error instanceof StoreFailure;
}
