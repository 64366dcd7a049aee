// Runs the compiled tests and ends with one line that counts every test: `N passed, N failed[, N skipped]`.
// Called by `npm test` and `npm run test:long`; arguments are test files, as dist/test/x.test.js or as test/x.test.ts.
//
// Each file runs in a separate process and writes TAP. The tests use the library tap, but not its runner, which would
// add half a second of CPU time to each file, and to every process that a test starts, to track loaded files. A run of
// many files bundles them first (bundle.mjs).
//
// `--costs` prints the CPU time of each file, including processes that it started, and writes the table to
// test/costs.tsv. The most expensive files start first, so that no long file runs alone at the end.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import {
  clonePath,
  filesBelow,
  printProgress,
  readOrNull,
  reportFailure,
  root,
  UserError,
} from '../cli/prepare/workplace.mjs';
import { bundledOf, bundleTests, withSourcePositions } from './bundle.mjs';

// Compiled code, so it is imported below, only after the build.
const countTapModule = new URL('../dist/test/helpers/house/count-tap.js', import.meta.url).href;
const LONG_FOLDER = 'dist/test/long/';
/** Tests that call the TypeScript compiler or read every file; `npm run check` runs them. */
const CHECK_FOLDER = 'dist/test/check/';
/** Fewer files than this run one by one: bundling takes as long as it saves. */
const MIN_BUNDLED = 10;
/** The test that runs first and stores the compiled code for the others; it starts a gateway, as most of them do. */
const FIRST_BUNDLED = 'dist/test/gateway/webhooks/waits.test.js';
const COSTS_FILE = clonePath('test', 'costs.tsv');
/**
 * Files that run at the same time: more than most machines have cores, because a test spends half of its time waiting.
 */
const MAX_JOBS = 4;
/** The time limit of one file; generous, since a build machine may be busy. */
const TIMEOUT_SECONDS = 180;
/** The time limit of one file of test/long, the longest of which runs for an hour. */
const LONG_TIMEOUT_SECONDS = 7200;
/** After its timeout, tap ends a file and reports where it hung; a file that still runs after this time is killed. */
const GRACE_SECONDS = 10;

/** The compiled file of a test (a path from the root), given its source file or its compiled file. */
function compiledPath(argument) {
  const path = relative(root, argument).replaceAll('\\', '/');
  return path.startsWith('dist/') ? path : `dist/${path.replace(/\.ts$/, '.js')}`;
}

/** The compiled test files to run, most expensive first. @throws UserError if an argument names no test */
function chooseFiles(args) {
  const all = filesBelow('dist/test', '.test.js').sort();
  const named = args.filter((argument) => !argument.startsWith('--')).map(compiledPath);
  for (const file of named) {
    if (!all.includes(file)) throw new UserError(`There is no test ${file}; a test is a file test/**/*.test.ts.`);
  }
  const long = args.includes('--long');
  const folder = args.includes('--check') ? CHECK_FOLDER : long ? LONG_FOLDER : null;
  const isWanted = (file) =>
    folder === null ? !file.startsWith(LONG_FOLDER) && !file.startsWith(CHECK_FOLDER) : file.startsWith(folder);
  const files = named.length > 0 ? named : all.filter(isWanted);
  if (files.length === 0) throw new UserError(`There are no such tests in dist/test.`);
  return mostExpensiveFirst(files);
}

/** The stored table: CPU seconds by source file. A file that is not in the table counts as the most expensive. */
function readCosts() {
  const rows = (readOrNull(COSTS_FILE) ?? '').split('\n').map((line) => line.split('\t'));
  return new Map(rows.filter(([seconds]) => Number(seconds) >= 0).map(([seconds, , file]) => [file, Number(seconds)]));
}

/** The source file of a compiled test. */
function sourceOf(file) {
  return file.replace(/^dist\//, '').replace(/\.js$/, '.ts');
}

function mostExpensiveFirst(files) {
  const costs = readCosts();
  const cost = (file) => costs.get(sourceOf(file)) ?? Number.POSITIVE_INFINITY;
  return [...files].sort((a, b) => (cost(a) < cost(b) ? 1 : cost(a) > cost(b) ? -1 : 0));
}

/** The files that run from the bundle, after bundling them. */
async function bundle(files, args) {
  const isWorthIt = files.length >= MIN_BUNDLED && !args.includes('--long') && !args.includes('--check');
  const bundled = isWorthIt ? bundledOf(files) : new Set();
  if (bundled.size > 0) await bundleTests([...bundled].sort());
  return bundled;
}

/** The arguments of Node.js for a file. */
function nodeArguments(file, bundled) {
  if (!bundled.has(file)) return [file];
  return [clonePath('test', 'run-bundled.cjs'), file, ...(file === FIRST_BUNDLED ? ['--write-code'] : [])];
}

/**
 * Runs one file. Returns its TAP, how it ended (null for status 0), and its CPU and elapsed time in seconds. A POSIX
 * shell starts the file, since the shell's `times` reports the CPU time of a process and of all that it started.
 */
function runFile(file, bundled) {
  const seconds = file.startsWith(LONG_FOLDER) ? LONG_TIMEOUT_SECONDS : TIMEOUT_SECONDS;
  const env = { ...process.env, TAP_TIMEOUT: String(seconds) };
  const script = '"$@"; status=$?; times >&3; exit $status';
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', script, 'sh', process.execPath, ...nodeArguments(file, bundled)], {
      cwd: root,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    const [, stdout, stderr, times] = child.stdio.map((stream) => (stream ? collectText(stream) : null));
    const killer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), (seconds + GRACE_SECONDS) * 1000);
    running.add(child);
    child.on('close', (code, signal) => {
      clearTimeout(killer);
      running.delete(child);
      const ending = code === 0 ? null : signal ? `was killed by ${signal}` : `ended with status ${code}`;
      const wall = (performance.now() - startedAt) / 1000;
      resolve({ file, tap: stdout.text, errors: stderr.text, ending, cpu: cpuSeconds(times.text), wall });
    });
  });
}

/** The running processes of test files, each the leader of a process group. */
const running = new Set();

/** Collects what a stream sends; `text` of the result grows as it arrives. */
function collectText(stream) {
  const collected = { text: '' };
  stream.setEncoding('utf8').on('data', (chunk) => {
    collected.text += chunk;
  });
  return collected;
}

/** Parses the output of `times`, a line for the shell and a line for its children: `0m0.001s 0m0.002s`. */
function cpuSeconds(times) {
  const spans = times.match(/(\d+)m([\d.]+)s/g) ?? [];
  return spans.reduce((sum, span) => {
    const [, minutes, seconds] = /(\d+)m([\d.]+)s/.exec(span);
    return sum + Number(minutes) * 60 + Number(seconds);
  }, 0);
}

/** Kills all tests on a signal: Ctrl-C reaches only this process, since each test is in another process group. */
function killTestsOnSignal() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => {
      for (const child of running) process.kill(-child.pid, 'SIGKILL');
      process.exit(130);
    });
  }
}

/** The failing test points of a TAP text, with tap's details about each. */
function failures(tap) {
  const lines = tap.split('\n');
  const shown = [];
  // The line that ends the details being copied; null outside details.
  let endOfDetails = null;
  for (const line of lines) {
    if (endOfDetails !== null) {
      shown.push(line);
      if (line === endOfDetails) endOfDetails = null;
    } else if (/^\s*not ok /.test(line)) {
      shown.push(line);
    } else if (/^\s*---$/.test(line) && /^\s*not ok /.test(shown.at(-1) ?? '')) {
      shown.push(line);
      endOfDetails = line.replace('---', '...');
    }
  }
  return shown.join('\n');
}

/** Prints a failed file's failures and stderr, and the command that repeats the file. */
async function reportFailedFile({ file, tap, errors, ending }, bundled) {
  const [shown, otherErrors] = await Promise.all(
    [failures(tap), errors.trimEnd()].map((text) => withSourcePositions(text, [...bundled].sort())),
  );
  printProgress(`\n${sourceOf(file)} ${ending ?? 'failed'}. Repeat: npm test -- ${sourceOf(file)}`);
  if (shown !== '') printProgress(shown);
  if (otherErrors !== '') printProgress(otherErrors);
}

/** On a terminal, shows the progress of the run in one line. */
function showProgress(done, files, failed) {
  if (!process.stderr.isTTY) return;
  const line = `${done} of ${files} files${failed > 0 ? `, ${failed} failed` : ''}`;
  process.stderr.write(done === files ? '\r\x1b[K' : `\r\x1b[K${line}`);
}

/** Runs the files, at most MAX_JOBS at a time, and calls `onRun` with the result of each. */
async function runFiles(files, bundled, onRun) {
  const waiting = files.filter((file) => !(bundled.has(file) && file === FIRST_BUNDLED));
  if (waiting.length < files.length) await onRun(await runFile(FIRST_BUNDLED, bundled));
  const worker = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift())
      await onRun(await runFile(file, bundled));
  };
  await Promise.all(Array.from({ length: MAX_JOBS }, worker));
}

/** The table of costs, most expensive file first, and the sum of CPU seconds. */
function costTable(runs) {
  const rows = [...runs].sort((a, b) => b.cpu - a.cpu);
  const lines = rows.map(({ cpu, wall, file }) => `${cpu.toFixed(1)}\t${wall.toFixed(1)}\t${sourceOf(file)}`);
  const total = rows.reduce((sum, { cpu }) => sum + cpu, 0);
  return { text: ['CPU s\twall s\tfile', ...lines, ''].join('\n'), total };
}

await reportFailure(async () => {
  const { closingLine, countTap } = await import(countTapModule);
  const args = process.argv.slice(2);
  const files = chooseFiles(args);
  printProgress(`Running ${files.length} test file${files.length === 1 ? '' : 's'}.`);
  killTestsOnSignal();
  const runs = [];
  let failedFiles = 0;
  const bundled = await bundle(files, args);
  await runFiles(files, bundled, async (run) => {
    runs.push(run);
    if (run.ending !== null) {
      failedFiles += 1;
      await reportFailedFile(run, bundled);
    }
    showProgress(runs.length, files.length, failedFiles);
  });
  if (args.includes('--costs')) {
    const { text, total } = costTable(runs);
    process.stdout.write(`${text}${total.toFixed(1)} CPU s in all\n`);
    if (!args.some((argument) => !argument.startsWith('--')) && !args.includes('--long'))
      writeFileSync(COSTS_FILE, text);
  }
  const count = countTap(runs.sort((a, b) => (a.file < b.file ? -1 : 1)));
  for (const test of count.skipped) printProgress(`skipped: ${test}`);
  for (const note of count.notes) printProgress(`failed: ${note}`);
  if (count.failed > 0) process.exitCode = 1;
  // The last line of stdout, after all other output: scripts read it there.
  process.stdout.write(`${closingLine(count)}\n`);
});
