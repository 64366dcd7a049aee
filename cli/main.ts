/**
 * The command line: builds as much of the tree as is called, and says how it ended.
 */
import { EXIT, exitCodeOf } from './exit-codes.js';
import { endAtSignals } from './interrupt.js';
import { note, oneLine } from './output.js';
import { calledGroups, makeProgram } from './program.js';

async function run(words: readonly string[]): Promise<void> {
  // Whoever reads what we print may have seen enough (`| head`).
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? EXIT.done);
      throw error;
    });
  endAtSignals();
  // What shells ask when somebody types Tab; it must say nothing else, whatever happens.
  if (words[0] === '__complete') {
    const { printCompletions } = await import('./completion.js');
    return await printCompletions(words.slice(1), async (first) => await makeProgram(calledGroups(first)));
  }
  try {
    const program = await makeProgram(calledGroups(words));
    await program.parseAsync(process.argv);
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
  const { StoreFailure } = await import('../gateway/store/store.js');
  return error instanceof StoreFailure;
}

await run(process.argv.slice(2));
