// Runs the compiled tests and ends with one line that counts every test: `N passed, N failed[, N skipped]`.
// Called by `npm test`, `npm run test:slow` and `npm run test:long`; arguments are test files, as dist/test/x.test.js
// or as test/x.test.ts.
//
// The files write TAP. They use the library tap, but not its runner, which would add half a second of CPU time to each
// file, and to every process that a test starts, to track loaded files. A run of many files bundles them first
// (bundle.mjs), and small files share processes (helpers/house/test-groups.ts). `--alone` gives each file its own.
//
// `--costs` prints the CPU time of each file, including processes that it started, and writes the table to
// test/costs.tsv. The most expensive files start first, so that no long file runs alone at the end.
import { spawn } from 'node:child_process';
import { relative } from 'node:path';
import { filesBelow, pathInClone, printProgress, reportFailure, root, UserError } from '../cli/prepare/workplace.mjs';
import { bundledOf, bundleTests, withSourcePositions } from './bundle.mjs';
import { costTable, cpuSeconds, sourceOf, storedCosts, writeCosts } from './costs.mjs';
import { keepTemporaryFilesInMemory } from './memory-folder.mjs';

// Compiled code, which exists only after the build.
const helper = (name) => import(new URL(`../dist/test/helpers/house/${name}.js`, import.meta.url).href);
const { closingLine, countTap } = await helper('count-tap');
const { firstBundled, groupFiles, splitGroup } = await helper('test-groups');
const { LONG_FOLDER, kindOfTest } = await helper('test-kinds');
/** Fewer files than this run one by one: bundling takes as long as it saves. */
const MIN_BUNDLED = 10;
/**
 * Files that run at the same time: more than most machines have cores, because a test spends half of its time waiting.
 */
const MAX_JOBS = 4;
/** The time limit of one file, and of a group of files; generous, since a build machine may be busy. */
const TIMEOUT_SECONDS = 180;
const GROUP_TIMEOUT_SECONDS = 1800;
/** The time limit of one file of test/long, the longest of which runs for an hour. */
const LONG_TIMEOUT_SECONDS = 7200;
/** After its timeout, tap ends a file and reports where it hung; a file that still runs after this time is killed. */
const GRACE_SECONDS = 10;

/** The compiled file of a test (a path from the root), given its source file or its compiled file. */
function compiledPath(argument) {
  const path = relative(root, argument).replaceAll('\\', '/');
  return path.startsWith('dist/') ? path : `dist/${path.replace(/\.ts$/, '.js')}`;
}

/** The compiled test files to run. @throws UserError if an argument names no test */
function chooseFiles(args) {
  const all = filesBelow('dist/test', '.test.js').sort();
  const named = args.filter((argument) => !argument.startsWith('--')).map(compiledPath);
  for (const file of named) {
    if (!all.includes(file)) throw new UserError(`There is no test ${file}; a test is a file test/**/*.test.ts.`);
  }
  const kind = ['check', 'long', 'slow'].find((each) => args.includes(`--${each}`)) ?? 'quick';
  const files = named.length > 0 ? named : all.filter((file) => kindOfTest(file) === kind);
  if (files.length === 0) throw new UserError(`There are no such tests in dist/test.`);
  return files;
}

/** The files that run from the bundle, after bundling them. */
async function bundle(files, args) {
  const isWorthIt = files.length >= MIN_BUNDLED && !args.includes('--long') && !args.includes('--check');
  const bundled = isWorthIt ? bundledOf(files) : new Set();
  if (bundled.size > 0) await bundleTests([...bundled].sort());
  return bundled;
}

/**
 * V8 collects its youngest objects when 32 MiB of them have been made, instead of 1 to 16: tests keep little of what
 * they make, so that most of these collections would find nothing to keep. It saves some 5 % of the CPU time.
 */
const NODE_FLAGS = ['--min-semi-space-size=32', '--max-semi-space-size=64'];

/**
 * The arguments of Node.js for files that share a process. One test of the bundle (`firstBundled`) runs before all
 * others, and stores V8's compiled code for them.
 */
function nodeArguments(files, bundled) {
  if (!bundled.has(files[0])) return [...NODE_FLAGS, ...files];
  const storesCode = files[0] === firstBundled(bundled);
  return [...NODE_FLAGS, pathInClone('test', 'run-bundled.cjs'), ...(storesCode ? ['--write-code'] : []), ...files];
}

/** The time limit of a process that runs these files. */
function timeoutSeconds(files) {
  if (files.length > 1) return GROUP_TIMEOUT_SECONDS;
  return files[0].startsWith(LONG_FOLDER) ? LONG_TIMEOUT_SECONDS : TIMEOUT_SECONDS;
}

/**
 * Runs files in one process. Returns for each its TAP, how it ended (null: well), and its CPU and elapsed time in
 * seconds. A POSIX shell starts the process, since the shell's `times` reports its CPU time with that of all that it
 * started.
 */
async function runFiles(files, bundled) {
  const { tap, errors, ending, cpu, wall } = await runProcess(files, bundled);
  if (files.length === 1) return [{ file: files[0], tap, errors, ending, cpu, wall, files }];
  const parts = splitGroup(files, tap, ending);
  // The CPU time of the process's start is divided among the files by their own.
  const counted = parts.reduce((sum, part) => sum + part.cpu, 0);
  return parts.map((part) => ({ ...part, errors, cpu: counted > 0 ? (part.cpu / counted) * cpu : 0, files }));
}

/** Runs files in one process. Resolves with its output, how it ended, and its CPU and elapsed time in seconds. */
function runProcess(files, bundled) {
  const seconds = timeoutSeconds(files);
  const env = { ...process.env, TAP_TIMEOUT: String(seconds) };
  // The shell prints the CPU times to descriptor 3, and exits as the process did.
  const script = '"$@"; status=$?; times >&3; exit $status';
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const child = spawn('sh', ['-c', script, 'sh', process.execPath, ...nodeArguments(files, bundled)], {
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
      resolve({ tap: stdout.text, errors: stderr.text, ending, cpu: cpuSeconds(times.text), wall });
    });
  });
}

/** The running processes of tests, each the leader of a process group. */
const running = new Set();

/** Collects what a stream sends; `text` of the result grows as it arrives. */
function collectText(stream) {
  const collected = { text: '' };
  stream.setEncoding('utf8').on('data', (chunk) => {
    collected.text += chunk;
  });
  return collected;
}

/** Kills all tests on a signal: Ctrl-C reaches only this process, since each test is in another process group. */
function killTestsOnSignal() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => {
      for (const child of running) process.kill(-child.pid, 'SIGKILL');
      // As after Ctrl-C: 128 and the number of SIGINT, 2.
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

/** Prints a failed file's failures and stderr, the files that ran before it, and the command that repeats the file. */
async function reportFailedFile({ file, tap, errors, ending, files }, bundled) {
  const [shown, otherErrors] = await Promise.all(
    [failures(tap), errors.trimEnd()].map((text) => withSourcePositions(text, [...bundled].sort())),
  );
  printProgress(`\n${sourceOf(file)} ${ending ?? 'failed'}. Repeat: npm test -- ${sourceOf(file)}`);
  const earlier = files.slice(0, files.indexOf(file)).map(sourceOf);
  if (earlier.length > 0) printProgress(`In the same process, before it: ${earlier.join(', ')}`);
  if (shown !== '') printProgress(shown);
  if (otherErrors !== '') printProgress(otherErrors);
}

/** On a terminal, shows the progress of the run in one line. */
function showProgress(done, files, failed) {
  if (!process.stderr.isTTY) return;
  const line = `${done} of ${files} files${failed > 0 ? `, ${failed} failed` : ''}`;
  // Back to the start of the line, which is erased.
  process.stderr.write(done === files ? '\r\x1b[K' : `\r\x1b[K${line}`);
}

/** Runs the groups, at most MAX_JOBS at a time, and calls `onRun` with the result of each file. */
async function runGroups(groups, bundled, onRun) {
  const runGroup = async (group) => {
    for (const run of await runFiles(group, bundled)) await onRun(run);
  };
  const first = groups.find(([file]) => bundled.has(file) && file === firstBundled(bundled));
  if (first) await runGroup(first);
  const waiting = groups.filter((group) => group !== first);
  const worker = async () => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) await runGroup(group);
  };
  await Promise.all(Array.from({ length: MAX_JOBS }, worker));
}

await reportFailure(async () => {
  const args = process.argv.slice(2);
  const files = chooseFiles(args);
  printProgress(`Running ${files.length} test file${files.length === 1 ? '' : 's'}.`);
  killTestsOnSignal();
  // The long tests fill gigabytes, and have a disk's waits.
  if (!args.includes('--long')) keepTemporaryFilesInMemory();
  const runs = [];
  let failedFiles = 0;
  const bundled = await bundle(files, args);
  const groups = groupFiles(files, {
    bundled,
    costOf: storedCosts(),
    alone: args.includes('--alone'),
  });
  await runGroups(groups, bundled, async (run) => {
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
    if (!args.some((argument) => !argument.startsWith('--')) && !args.includes('--long')) writeCosts(runs);
  }
  const count = countTap(runs.sort((a, b) => (a.file < b.file ? -1 : 1)));
  for (const test of count.skipped) printProgress(`skipped: ${test}`);
  for (const note of count.notes) printProgress(`failed: ${note}`);
  if (count.failed > 0) process.exitCode = 1;
  // The last line of stdout, after all other output: scripts read it there.
  process.stdout.write(`${closingLine(count)}\n`);
});
