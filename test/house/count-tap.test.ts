// Checks the counts of passed, failed and skipped tests with which a test run ends. The inputs are parts of real output
// of tap.
import t from 'tap';
import { closingLine, countTap } from '../helpers/house/count-tap.js';

/** The output of a test file; `ending` says how its process ended, null for status 0. */
function file(ending: string | null, ...lines: string[]) {
  return { file: 'a.test.js', tap: ['TAP version 14', ...lines, ''].join('\n'), ending };
}

/** The closing line of a run of these files. */
function closing(...runs: ReturnType<typeof file>[]): string {
  return closingLine(countTap(runs));
}

const FAILED = 'ended with status 1';

t.test('assertions are counted, not subtests and files', async (t) => {
  const nested = [
    '# Subtest: outer',
    '    ok 1 - first',
    '    # Subtest: inner \\# 2',
    '        ok 1 - second',
    '        1..1',
    '    ok 2 - inner \\# 2 # time=2ms',
    '    1..2',
    'ok 1 - outer # time=7ms',
    '1..1',
  ];
  t.equal(closing(file(null, ...nested)), '2 passed, 0 failed');
});

t.test('a failing assertion counts once, however many subtests fail with it', async (t) => {
  const lines = ['# Subtest: bad', '    not ok 1 - is equal', '    ok 2', '    1..2', 'not ok 1 - bad', '1..1'];
  t.equal(closing(file(FAILED, ...lines)), '1 passed, 1 failed');
});

t.test('a killed file counts as a failure, even if none of its assertions failed', async (t) => {
  const killedRun = countTap([file('was ended by SIGKILL', '# Subtest: x', '    ok 1', '    1..1', 'ok 1 - x')]);
  t.equal(closingLine(killedRun), '1 passed, 1 failed');
  t.same(killedRun.notes, ['a.test.js: failed without a failing assertion: it was ended by SIGKILL.']);
  t.equal(closing(file(FAILED, 'ok 1', '1..1')), '1 passed, 1 failed', 'an exit status other than 0 fails the file');
  t.equal(closing(file(null, 'ok 1')), '1 passed, 1 failed', 'a missing plan fails the file');
});

t.test('a file without assertions is a failure', async (t) => {
  t.equal(closing(file(null, '1..0 # no tests found')), '0 passed, 1 failed');
  t.equal(closing(file(null)), '0 passed, 1 failed', 'a file without any output is a failure');
});

t.test('a file that gives a reason for running nothing counts as skipped', async (t) => {
  const count = countTap([file(null, '1..0 # needs a server')]);
  t.equal(closingLine(count), '0 passed, 0 failed, 1 skipped');
  t.same(count.skipped, ['a.test.js: needs a server']);
});

t.test('skipped and todo tests are neither passed nor failed, and are listed with their reason', async (t) => {
  const lines = ['ok 1 - with a server # SKIP no server here', 'not ok 2 - later # todo soon', 'ok 3', '1..3'];
  const count = countTap([file(null, ...lines)]);
  t.equal(closingLine(count), '1 passed, 0 failed, 2 skipped');
  t.same(count.skipped, ['with a server: no server here', 'later: soon']);
});

t.test('a subtest without assertions counts as one assertion, passed or failed', async (t) => {
  const lines = [
    '# Subtest: quiet',
    '    1..0',
    'ok 1 - quiet',
    '# Subtest: loud',
    '    1..0',
    'not ok 2 - loud',
    '1..2',
  ];
  t.equal(closing(file(FAILED, ...lines)), '1 passed, 1 failed');
});

t.test('a file that threw while it was imported is a failure', async (t) => {
  const lines = ['not ok 1 - at import', '  ---', '  tapCaught: unhandledRejection', '  ...', '1..1'];
  t.equal(closing(file(FAILED, ...lines)), '0 passed, 1 failed');
});

t.test('a file that ended early is a failure, and the other files still count', async (t) => {
  const passes = file(null, 'ok 1 - is equal', 'ok 2 - is equal', '1..2');
  t.equal(closing(passes, { file: 'b.test.js', tap: '', ending: 'ended with status 7' }), '2 passed, 1 failed');
  t.equal(closing(passes, file(FAILED, 'Bail out! the disk is full')), '2 passed, 1 failed', 'a bail-out');
});

t.test('buffered subtests, which tap writes for parallel tests, are counted in the same way', async (t) => {
  const buffered = ['ok 1 - outer {', '    ok 1', '    ok 2', '    1..2', '}', '1..1'];
  t.equal(closing(file(null, ...buffered)), '2 passed, 0 failed');
});
