// Installs the package into an empty folder, as a user does, and runs it until the demo's receiver has verified a
// webhook.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printProgress, UserError } from '../workplace.mjs';
import { npmOutput } from './npm-output.mjs';

/** What the demo prints for a webhook whose signature the receiver has checked. */
const VERIFIED = / hook {2}verified /;
/** A command that has not ended, or a demo without a webhook, after this time has failed. */
const LIMIT_MS = 120_000;

/** Tries the package out. Throws a UserError that says what went wrong. */
export async function tryPackage(tarball, version) {
  const folder = mkdtempSync(join(tmpdir(), 'lockgate-trial-'));
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    await timed('Installed, without the SQLite driver', () =>
      npmOutput(['install', '--prefer-offline', '--ignore-scripts', tarball], folder),
    );
    await timed('The SQLite driver is there', () => npmOutput(['rebuild', 'better-sqlite3'], folder));
    const program = join(folder, 'node_modules', '.bin', 'lockgate');
    const printed = (await runToEnd(program, ['--version'], folder)).trim();
    if (printed !== version) throw new UserError(`lockgate --version printed ${printed}: expected ${version}.`);
    const trace = join(folder, 'trace.jsonl');
    await runToEnd(program, ['sim', 'run', '--virtual', '--locks', '2', '--days', '1', '--out', trace], folder);
    if (readFileSync(trace, 'utf8') === '') throw new UserError('lockgate sim run wrote an empty trace.');
    await runToEnd(program, ['trace', 'check', trace], folder);
    await timed('The demo’s first webhook is verified', () => untilVerified(program, folder));
    printProgress('The package works in an empty folder.');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs a step and prints how long it took. */
async function timed(what, step) {
  const startedAt = performance.now();
  await step();
  printProgress(`${what}: ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);
}

/** Runs the program to its end. Resolves to what it printed. */
function runToEnd(program, args, folder) {
  return new Promise((done, fail) => {
    const child = startProgram(program, args, folder, fail);
    child.on('close', (code) => {
      if (code === 0) done(child.printed);
      else fail(new UserError(`${child.failed}\nlockgate ${args.join(' ')} ended with status ${code}.`));
    });
  });
}

/** Runs the demo until a webhook was verified, and stops it. */
function untilVerified(program, folder) {
  const ports = ['--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  return new Promise((done, fail) => {
    const child = startProgram(program, ['demo', ...ports], folder, fail);
    let isVerified = false;
    child.stdout.on('data', () => {
      if (isVerified || !VERIFIED.test(child.printed)) return;
      isVerified = true;
      child.kill('SIGINT');
    });
    child.on('close', (code) => {
      if (isVerified && code === 0) done();
      else fail(new UserError(`${child.printed}${child.failed}\nlockgate demo ended with status ${code}.`));
    });
  });
}

/** Starts the program. What it prints is collected in `printed` (stdout) and `failed` (stderr) of the process. */
function startProgram(program, args, folder, fail) {
  const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS });
  Object.assign(child, { printed: '', failed: '' });
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    child.printed += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    child.failed += chunk;
  });
  child.on('error', fail);
  return child;
}
