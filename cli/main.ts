/**
 * The process of the command line: its streams, its signals, and what shells ask. What a command line does is in
 * command-line.ts.
 */

import { calledGroups, makeProgram } from './program.js';
import { runCommandLine } from './terminal/command-line.js';
import { EXIT } from './terminal/exit-codes.js';
import { endAtSignals, holdHangUps } from './terminal/interrupt.js';

async function run(words: readonly string[]): Promise<void> {
  // A service that is asked to read its files again while it starts must not end.
  if (words.find((word) => !word.startsWith('-')) === 'serve') holdHangUps();
  // Whoever reads what we print may have seen enough (`| head`).
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? EXIT.done);
      // The terminal was closed: a service that outlives it has nobody to tell.
      if (error.code === 'EIO') return;
      throw error;
    });
  endAtSignals();
  // What shells ask when somebody types Tab; it must say nothing else, whatever happens.
  if (words[0] === '__complete') {
    const { printCompletions } = await import('./commands/completion/completion.js');
    return await printCompletions(words.slice(1), async (first) => await makeProgram(calledGroups(first)));
  }
  await runCommandLine(words);
}

await run(process.argv.slice(2));
