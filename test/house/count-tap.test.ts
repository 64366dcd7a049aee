// The closing line of a run is what everybody believes, so what it counts is tested on pieces of tap's real output.
import t from 'tap';
import { closingLine, countTap } from '../helpers/house/count-tap.js';

/** One file's part of the output: its header, its lines as tap indents them, and the test point that closes it. */
function file(ending: string, ...lines: string[]): string {
  return ['# Subtest: a.test.js', ...lines.map((line) => `    ${line}`), ending, ''].join('\n');
}

/** What a run of these files comes to, as the closing line. */
function closing(expected: string[], ...parts: string[]): string {
  return closingLine(countTap(parts.join('\n'), expected));
}

const passes = file('ok 1 - a.test.js # time=9ms', 'ok 1 - is equal', 'ok 2 - is equal', '1..2');

t.test('assertions are counted, not the subtests and files around them', async (t) => {
  const nested = file(
    'ok 1 - a.test.js',
    '# Subtest: outer',
    '    ok 1 - first',
    '    # Subtest: inner \\# 2',
    '        ok 1 - second',
    '        1..1',
    '    ok 2 - inner \\# 2 # time=2ms',
    '    1..2',
    'ok 1 - outer # time=7ms',
    '1..1',
  );
  t.equal(closing(['a.test.js'], nested, '1..1'), '2 passed, 0 failed');
});

t.test('a failing assertion counts once, however many subtests fail with it', async (t) => {
  const fails = file(
    'not ok 1 - a.test.js',
    '    not ok 1 - is equal',
    '    ok 2',
    '    1..2',
    'not ok 1 - bad',
    '1..1',
  );
  t.equal(closing(['a.test.js'], fails, '1..1'), '1 passed, 1 failed');
});

t.test('a file that was killed is a failure, though none of its assertions failed', async (t) => {
  const killed = file('not ok 1 - a.test.js', '    ok 1', '    1..1', 'ok 1 - x', '# test count(1) != plan(null)');
  const count = countTap(`${killed}\n1..1\n`, ['a.test.js']);
  t.equal(closingLine(count), '1 passed, 1 failed');
  t.same(count.notes, ['a.test.js: failed without a failing assertion.']);
});

t.test('a file that ran nothing is a failure, though tap calls it skipped', async (t) => {
  const empty = file('ok 1 - a.test.js # SKIP no tests found', '1..0 # no tests found');
  t.equal(closing(['a.test.js'], empty, '1..1'), '0 passed, 1 failed');
  t.equal(closing(['a.test.js'], 'ok 1 - a.test.js\n1..1\n'), '0 passed, 1 failed', 'without any line of its own too');
});

t.test('a file that says why it runs nothing is skipped', async (t) => {
  const count = countTap(file('ok 1 - a.test.js # SKIP needs a server', '1..0 # needs a server'), ['a.test.js']);
  t.equal(closingLine(count), '0 passed, 0 failed, 1 skipped');
  t.same(count.skipped, ['a.test.js: needs a server']);
});

t.test('skipped tests and those still to do are neither passed nor failed, and keep their reason', async (t) => {
  const lines = ['ok 1 - with a server # SKIP no server here', 'not ok 2 - later # todo soon', 'ok 3', '1..3'];
  const count = countTap(file('ok 1 - a.test.js', ...lines), ['a.test.js']);
  t.equal(closingLine(count), '1 passed, 0 failed, 2 skipped');
  t.same(count.skipped, ['a.test.js > with a server: no server here', 'a.test.js > later: soon']);
});

t.test('a subtest without assertions counts as one, by how it ended', async (t) => {
  const lines = [
    '# Subtest: quiet',
    '    1..0',
    'ok 1 - quiet',
    '# Subtest: loud',
    '    1..0',
    'not ok 2 - loud',
    '1..2',
  ];
  t.equal(closing(['a.test.js'], file('not ok 1 - a.test.js', ...lines)), '1 passed, 1 failed');
});

t.test('a file that threw while it was imported is a failure', async (t) => {
  const throws = file(
    'not ok 1 - a.test.js',
    'not ok 1 - at import',
    '  ---',
    '  tapCaught: unhandledRejection',
    '  ...',
  );
  t.equal(closing(['a.test.js'], throws), '0 passed, 1 failed');
});

t.test('a run that broke off fails for every file it owes', async (t) => {
  t.equal(closing(['a.test.js', 'b.test.js', 'c.test.js'], passes), '2 passed, 2 failed');
  t.equal(closing(['a.test.js'], ''), '0 passed, 1 failed', 'no output at all');
  t.equal(closing(['a.test.js'], passes, 'Bail out! the disk is full\n'), '2 passed, 1 failed', 'a bail-out');
});

t.test('buffered subtests, as tap writes them for files run side by side, count the same', async (t) => {
  const buffered = [
    'ok 1 - a.test.js {',
    '    ok 1 - outer {',
    '        ok 1',
    '        ok 2',
    '        1..2',
    '    }',
    '    1..1',
    '}',
  ];
  t.equal(closing(['a.test.js'], buffered.join('\n'), '1..1'), '2 passed, 0 failed');
});
