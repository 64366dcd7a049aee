/**
 * What a process of `lockgate` does: handles errors of its output streams, signals and shell completion, and calls
 * terminal/command-line.ts, which runs the command.
 */
import { calledGroups, makeProgram } from './program.js';
import { runCommandLine } from './terminal/command-line.js';
import { EXIT_CODE } from './terminal/exit-codes.js';
import { exitAtSignals, holdHangUps } from './terminal/interrupt.js';

/** Runs the command with these words: `serve`, its flags, and so on. */
export async function runProcess(words: readonly string[]): Promise<void> {
  // SIGHUP asks a gateway to reread its certificate; it must not end one that is still starting.
  if (words.find((word) => !word.startsWith('-')) === 'serve') holdHangUps();
  // The reader of the output may close the pipe (`| head`).
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? EXIT_CODE.done);
      // The terminal was closed; a gateway continues without it.
      if (error.code === 'EIO') return;
      throw error;
    });
  exitAtSignals();
  // Shells call this for Tab; it must print nothing but completions.
  if (words[0] === '__complete') {
    const { printCompletions } = await import('./commands/completion/completion.js');
    return await printCompletions(words.slice(1), async (first) => await makeProgram(calledGroups(first)));
  }
  await runCommandLine(words);
}
