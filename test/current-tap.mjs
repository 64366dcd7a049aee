// The `t` of test files in a bundle, which they import instead of that of tap (bundle.mjs). So several files can run in
// one process, each in a subtest that has its hooks, time limit and result.
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
  const before = process.cpuUsage();
  test.teardown(() => {
    const { user, system } = process.cpuUsage(before);
    root.comment(`cpu ${(user + system) / 1e6} s ${file}`);
  });
  current = test;
  // Loading the file adds its tests to the subtest, which ends after the last of them.
  load();
}
