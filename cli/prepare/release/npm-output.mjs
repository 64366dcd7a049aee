// Runs npm to its end and returns what it prints on stdout.
import { spawn } from 'node:child_process';
import { npmCommand, npmEnvironment } from '../npm.mjs';
import { UserError } from '../workplace.mjs';

/** A failure quotes this many lines of npm's output. */
const QUOTED_LINES = 15;

/** Runs `npm ...args` in a folder. Throws a UserError with the end of npm's output if it fails. */
export function npmOutput(args, folder) {
  const [command, ...first] = npmCommand();
  const flags = ['--no-audit', '--no-fund', '--loglevel=error'];
  return new Promise((done, fail) => {
    const output = { stdout: '', stderr: '' };
    const child = spawn(command, [...first, ...args, ...flags], {
      cwd: folder,
      env: npmEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32',
    });
    for (const name of ['stdout', 'stderr'])
      child[name].setEncoding('utf8').on('data', (chunk) => {
        output[name] += chunk;
      });
    child.on('error', fail);
    child.on('close', (code) => {
      if (code === 0) return done(output.stdout);
      const tail = output.stderr.trim().split('\n').slice(-QUOTED_LINES).join('\n');
      fail(new UserError(`${tail}\n\nnpm ${args[0]} ended with status ${code}.`));
    });
  });
}
