// Checks the coding rules that a program can check (docs/contributing.md). Each check is first
// tried on samples that it must find.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ourFiles, root } from '../helpers/house/our-files.js';
import {
  findDefaultExports,
  findLongFunctions,
  findSentenceMatching,
  findSkippedTests,
  findTimeAndRandom,
  type LongFunction,
  longFunctions,
} from '../helpers/house/tidy-code.js';
import { findCopies } from '../helpers/house/tidy-copies.js';
import {
  findFoldersWithoutReadme,
  findFullFolders,
  findLongLines,
  findMarkers,
  findNames,
  findTopLevel,
  type SourceFile,
} from '../helpers/house/tidy-text.js';

/** Functions that may be longer than the limit for now. Each entry must have the function's exact length. */
const allowedLongFunctions: readonly LongFunction[] = [];

const paths = ourFiles();
const isText = (path: string) =>
  /\.(ts|mjs|cjs|js|json|jsonl|md|proto|ya?ml|css|html|sh)$|(^|\/)\.?[a-z]+$/i.test(path);
const files: SourceFile[] = paths
  .filter((path) => isText(path) && !path.endsWith('package-lock.json') && !/(^|\/)gen\//.test(path))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
const code = files.filter(({ path }) => /\.(ts|mjs)$/.test(path));

/** A file that does not exist, to prove what a check finds. */
function sample(path: string, ...lines: string[]): SourceFile {
  return { path, text: lines.join('\n') };
}

t.test('the project’s files are found', async (t) => {
  t.ok(paths.includes('package.json') && paths.includes('test/check/tidy.test.ts'), 'known files are listed');
  t.ok(code.length > 10, 'the code has been read');
});

t.test('the top-level folder contains only listed entries', async (t) => {
  t.equal(findTopLevel(['gateway/a.ts', 'src/b.ts', 'notes.txt', 'README.md']).length, 2);
  t.same(findTopLevel(paths), []);
});

t.test('file and folder names are kebab-case and not vague', async (t) => {
  const bad = [
    'gateway/bigThing.ts',
    'proto/utils/a.ts',
    'cli/index.ts',
    'test/A.ts',
    'proto/under_score.ts',
    'cli/lib.ts',
  ];
  t.equal(findNames(bad).length, bad.length);
  t.same(findNames(['gateway/README.md', '.ci/run', 'test/a-b.test.ts', 'gateway/console/index.html', '.nvmrc']), []);
  t.same(findNames(paths), []);
});

t.test('folders have at most 20 source files', async (t) => {
  const many = Array.from({ length: 21 }, (_, index) => `cli/a/b${index}.ts`);
  t.equal(findFullFolders(many).length, 1);
  t.same(findFullFolders([...many.slice(1), 'cli/a/c.md', 'cli/a/d/e.ts']), []);
  t.same(findFullFolders(paths), []);
});

t.test('each folder of the second level has a README', async (t) => {
  t.equal(findFoldersWithoutReadme(['cli/a/b.ts', 'cli/a/c/README.md', 'proto/gen/a.ts', 'cli/a.ts']).length, 1);
  t.same(findFoldersWithoutReadme(['cli/a/b.ts', 'cli/a/README.md', 'test/a/b.ts']), []);
  t.same(findFoldersWithoutReadme(paths), []);
});

t.test('no code of over 12 lines occurs twice without a reason', async (t) => {
  const repeatedLines = Array.from({ length: 13 }, (_, index) => `  step(${index});`);
  const original = sample('cli/a.ts', "import { step } from './step.js';", 'function a() {', ...repeatedLines, '}');
  const copy = sample(
    'cli/b.ts',
    '// Something else.',
    'function b() {',
    ...repeatedLines.slice(0, 5),
    '',
    ...repeatedLines.slice(5),
  );
  t.match(findCopies([original, copy]), [/^cli\/b\.ts:3: 13 lines are the same as from cli\/a\.ts:3;/]);
  t.same(
    findCopies([original, sample('cli/b.ts', '// Repeats cli/a.ts: to show it.', ...repeatedLines)]),
    [],
    'a comment gives the reason',
  );
  t.same(findCopies([original, sample('cli/b.ts', ...repeatedLines.slice(1))]), [], '12 equal lines are allowed');
  t.equal(
    findCopies([sample('cli/a.ts', ...repeatedLines, 'between();', ...repeatedLines)]).length,
    1,
    'a copy in the same file is found',
  );
  const product = code.filter(({ path }) => /^(proto|gateway|firmware-sim|cli)\//.test(path));
  t.ok(product.length > 100);
  t.same(findCopies(product), []);
});

t.test('lines fit in 120 columns', async (t) => {
  const words = 'word '.repeat(25);
  t.equal(findLongLines(sample('cli/a.ts', words)).length, 1);
  t.equal(findLongLines(sample('docs/a.md', `| ${words} |`, `https://example.org/${'x'.repeat(120)}`)).length, 0);
  t.equal(findLongLines(sample('test/vectors/a.jsonl', words)).length, 0);
  t.same(files.flatMap(findLongLines), []);
});

t.test('no comment marks unfinished work', async (t) => {
  // Each marker is made of two halves, so that this file does not have it.
  const markers = ['TO', 'FIX', 'HA', 'XX'].map((half, index) => `// ${half}${['DO', 'ME', 'CK', 'X'][index]}: later`);
  t.equal(findMarkers(sample('cli/a.ts', ...markers)).length, 4);
  t.same(files.flatMap(findMarkers), []);
});

t.test('there are no default exports', async (t) => {
  const bad = [
    'export default 1;',
    'export default function f() {}',
    'export default class {}',
    'export { a as default };',
  ];
  for (const line of bad) t.equal(findDefaultExports(sample('cli/a.ts', line)).length, 1, line);
  t.same(findDefaultExports(sample('cli/a.ts', 'switch (a) { default: b(); }', "import t from 'tap';")), []);
  t.same(code.flatMap(findDefaultExports), []);
});

t.test('functions have at most 70 lines', async (t) => {
  const body = (lines: number) => Array.from({ length: lines - 2 }, () => '  step();');
  const long = longFunctions(
    sample('cli/a.ts', 'const work = () => {', ...body(71), '};', 'function f() {', ...body(70), '}'),
  );
  t.same(long, [{ path: 'cli/a.ts', name: 'work', lines: 71 }]);
  t.equal(findLongFunctions(long, []).length, 1, 'a long function is found');
  t.equal(findLongFunctions(long, long).length, 0, 'a listed long function is allowed');
  t.equal(findLongFunctions([], long).length, 1, 'a list entry without such a function is found');
  t.same(findLongFunctions(code.flatMap(longFunctions), allowedLongFunctions), []);
});

t.test('only two files use real time and random numbers', async (t) => {
  const bad = [
    ...['Date.now();', 'new Date();', 'Date();', 'performance.now();', 'process.hrtime.bigint();', 'Math.random();'],
    ...['setTimeout(f, 1);', 'globalThis.setInterval(f, 1);', 'const timers = { setImmediate };', 'later(setTimeout);'],
    ...["import { setTimeout as pause } from 'node:timers/promises';", 'AbortSignal.timeout(5);'],
  ];
  for (const line of bad) t.equal(findTimeAndRandom(sample('gateway/a.ts', line)).length, 1, line);
  const good = ['// Date.now()', 'new Date(0);', 'clock.setTimeout(f, 1);', 'interface C { setTimeout(): void }'];
  for (const line of good) t.same(findTimeAndRandom(sample('gateway/a.ts', line)), [], line);
  t.match(
    findTimeAndRandom(sample('gateway/a.ts', 'Date.now()'))[0],
    /gateway\/a\.ts:1: take a Clock from proto\/clock/,
  );
  t.same(
    findTimeAndRandom(sample('proto/clock.ts', 'Date.now(); setTimeout(f, 1);')),
    [],
    'the clock may use real time',
  );
  t.equal(
    findTimeAndRandom(sample('proto/clock.ts', 'Math.random();')).length,
    1,
    'the clock may not use random numbers',
  );
  t.same(code.flatMap(findTimeAndRandom), []);
});

t.test('no test is skipped without a reason', async (t) => {
  const bad = [
    "t.skip('a', f);",
    "t.only('a', f);",
    "t.test('a', { skip: true }, f);",
    "t.test('a', { only: true }, f);",
  ];
  for (const line of bad) t.equal(findSkippedTests(sample('test/a.test.ts', line)).length, 1, line);
  t.same(findSkippedTests(sample('test/a.test.ts', "t.test('a', { skip: server ? false : 'no server' }, f);")), []);
  t.same(code.flatMap(findSkippedTests), []);
});

t.test('no code depends on the wording of a message', async (t) => {
  const bad = [
    "if (error.message.includes('busy')) retry();",
    'const kind = /^the store /.test(refused.why);',
    "switch (message) { case 'no such lock': break; }",
    "if (error.message === 'no such lock') return;",
    'if (why === NO_LOCK) return;',
    'const [, id] = /URL (.+)/.exec(error.message) ?? [];',
  ];
  for (const line of bad) t.equal(findSentenceMatching(sample('gateway/a.ts', line)).length, 1, line);
  const good = [
    "if (error.code === 'busy') retry();",
    'if (why === undefined) return;',
    "if (message !== '') print(message);",
  ];
  for (const line of good) t.same(findSentenceMatching(sample('gateway/a.ts', line)), [], line);
  t.same(code.flatMap(findSentenceMatching), []);
});
