// The `t` of test files in a bundle, which they import instead of that of tap (bundle.mjs). So several files can run in
// one process, each in a subtest that has its hooks, time limit and result.
import { readFileSync } from 'node:fs';
import root from 'tap';

/** The time limit of one file of several, in milliseconds; a file alone has that of `TAP_TIMEOUT`. */
const FILE_TIMEOUT_MS = 180_000;

/** The test that runs now: tap's own, or the subtest of a file. */
let current = root;

/** Passes everything on to the test that runs now. */
export const currentTap = new Proxy(
  {},
  {
    get(_, name) {
      const value = current[name];
      return typeof value === 'function' ? value.bind(current) : value;
    },
    set(_, name, value) {
      current[name] = value;
      return true;
    },
  },
);

/**
 * Runs test files one after another. `tests` has a function for each file that loads it. One file writes the same TAP
 * as without a bundle; of several, each is a subtest with the file's name, followed by a comment with its CPU time
 * (splitGroup in helpers/house/test-groups.ts reads both).
 */
export function runTests(tests, files) {
  if (files.length === 1) return tests[files[0]]();
  // Each waits for the one before, since tap runs subtests in order.
  for (const file of files) root.test(file, { timeout: FILE_TIMEOUT_MS }, (test) => runOne(test, file, tests[file]));
}

async function runOne(test, file, load) {
  const before = cpuSeconds();
  test.teardown(() => root.comment(`cpu ${(cpuSeconds() - before).toFixed(2)} s ${file}`));
  current = test;
  // Loading the file adds its tests to the subtest, which ends after the last of them.
  load();
}

/** The CPU time of this process and of those that it started and that have ended, in seconds. */
function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + endedProcessesSeconds();
}

/** Clock ticks a second, in which Linux counts CPU time for programs whatever its own clock is. */
const TICKS_PER_SECOND = 100;

/** The CPU time of ended child processes and of theirs, in seconds; 0 where the system is not Linux. */
function endedProcessesSeconds() {
  if (process.platform !== 'linux') return 0;
  // After the program's name, which is in parentheses: the fields `cutime` and `cstime` of proc(5).
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND;
}
