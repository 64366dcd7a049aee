// Checks which test files share a process, and that the output of such a process is divided into that of its files.
// Only files that the build compiles into one file, the bundle, can share a process.
import t from 'tap';
import { countTap } from '../helpers/house/count-tap.js';
import { groupFiles, splitGroup } from '../helpers/house/test-groups.js';
import { kindOfTest } from '../helpers/house/test-kinds.js';

const FILES = ['dist/test/a.test.js', 'dist/test/b.test.js'] as const;

/** What tap writes for the first file: one assertion, passed or not. */
function first(outcome: 'ok' | 'not ok'): string[] {
  const details = outcome === 'ok' ? [] : ['      ---', '      wanted: 1', '      ...'];
  const subtest = ['    # Subtest: inner', `        ${outcome} 1 - one`, ...details, '        1..1'];
  return [
    `# Subtest: ${FILES[0]}`,
    ...subtest,
    `    ${outcome} 1 - inner`,
    '    1..1',
    `${outcome} 1 - ${FILES[0]} # time=20ms`,
  ];
}

const SECOND = [`# Subtest: ${FILES[1]}`, '    ok 1 - two', '    1..1', `ok 2 - ${FILES[1]} # time=1500ms`];
const TIMES = [`# cpu 0.25 s ${FILES[0]}`, `# cpu 1.5 s ${FILES[1]}`, '1..2'];

/** The results of a group of the two files that wrote these lines. */
function split(lines: string[], ending: string | null) {
  return splitGroup(FILES, ['TAP version 14', ...lines].join('\n'), ending);
}

t.test('each file has its assertions and times', async (t) => {
  const results = split([...first('ok'), '', ...SECOND, '', ...TIMES], null);
  t.match(results, [
    { file: FILES[0], ending: null, cpu: 0.25, wall: 0.02 },
    { file: FILES[1], ending: null, cpu: 1.5, wall: 1.5 },
  ]);
  t.match(countTap(results), { passed: 2, failed: 0, notes: [] });
  t.match(countTap(results.slice(1)), { passed: 1, failed: 0 });
});

t.test('a failed file does not fail the others', async (t) => {
  const results = split([...first('not ok'), '', ...SECOND, '', ...TIMES], 'ended with status 1');
  t.same(
    results.map(({ ending }) => ending),
    ['failed', null],
  );
  t.match(results[0]?.tap, /^ {4}not ok 1 - one$/m);
  t.match(countTap(results), { passed: 1, failed: 1, notes: [] });
});

t.test('a file that failed without a failed assertion is a failure, with the details', async (t) => {
  const timedOut = [
    `# Subtest: ${FILES[0]}`,
    '    1..0',
    `not ok 1 - ${FILES[0]} # time=9ms`,
    '  ---',
    '  signal: SIGTERM',
  ];
  const results = split([...timedOut, '  ...', '', ...SECOND, '', ...TIMES], 'ended with status 1');
  t.match(results[0]?.tap, /^# signal: SIGTERM$/m);
  t.match(countTap(results), { passed: 1, failed: 1 });
});

t.test('files that did not finish are failures', async (t) => {
  const results = split([...first('ok'), SECOND[0] ?? '', '    ok 1 - two'], 'was killed by SIGKILL');
  t.match(results, [{ ending: null }, { ending: /did not finish: the process .* was killed by SIGKILL/ }]);
  t.match(countTap(results), { passed: 2, failed: 1 });
  t.match(countTap(split([], null)), { passed: 0, failed: 2 }, 'even after status 0');
});

t.test('if the process fails after all files passed, the last file fails', async (t) => {
  const results = split([...first('ok'), '', ...SECOND, '', ...TIMES], 'ended with status 1');
  t.match(results, [{ ending: null }, { ending: 'ended with status 1' }]);
  t.match(countTap(results), { passed: 2, failed: 1 });
});

t.test('cheap files of the bundle share a process, neighbours first, up to a limit', async (t) => {
  // Alone are files that are expensive by themselves, those outside the bundle, and system tests. test-groups.ts has
  // the limits. The numbers are CPU seconds.
  const costs: Record<string, number> = { 'a/1': 5, 'b/1': 5, 'a/2': 25, 'a/3': 0.2, 'dist/test/system/x': 0.1 };
  for (let i = 10; i < 16; i += 1) costs[`c/${i}`] = 12;
  const options = {
    costOf: (file: string) => costs[file] ?? 0,
    bundled: new Set(Object.keys(costs).filter((file) => file !== 'b/1')),
    alone: false,
  };
  const files = Object.keys(costs).reverse();
  t.same(groupFiles(files, options), [
    ['a/1', 'a/3', 'c/10', 'c/11', 'c/12', 'c/13'],
    ['a/2'],
    ['c/14', 'c/15'],
    ['b/1'],
    ['dist/test/system/x'],
  ]);
  t.same(
    groupFiles(files, { ...options, alone: true }).map((group) => group.length),
    files.map(() => 1),
    'each file alone, if that is asked for',
  );
});

t.test('a test’s name and folder say which command runs it', async (t) => {
  const kinds = {
    'dist/test/gateway/webhooks/retry.test.js': 'quick',
    'dist/test/system/console-browser.slow.test.js': 'slow',
    'dist/test/long/kill.test.js': 'long',
    'dist/test/long/sizes/events.slow.test.js': 'long',
    'dist/test/check/tidy.test.js': 'check',
  };
  for (const [file, kind] of Object.entries(kinds)) t.equal(kindOfTest(file), kind, file);
});
