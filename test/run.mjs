// Runs the compiled tests with tap and closes with one line that can be believed: `N passed, N failed[, N skipped]`.
// Called by `npm test` and `npm run test:long`; arguments are test files, as dist/test/x.test.js or as test/x.test.ts.
import { mkdirSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import { oneAtATime } from '../cli/prepare/one-at-a-time.mjs';
import { at, endWith, filesBelow, readOrNull, root, runTool, Stop, say } from '../cli/prepare/workplace.mjs';

// Of what was compiled, so it can't be imported above, before a build was made sure of.
const counter = new URL('../dist/test/helpers/house/count-tap.js', import.meta.url).href;
const builtTap = 'node_modules/@tapjs/test/test-built/dist/esm/index.js';
const longFolder = 'dist/test/long/';
const longTimeoutSeconds = 900;

/** The same path in dist for a source file, and a path from the root for an absolute one. */
function compiled(argument) {
  const path = relative(root, argument).replaceAll('\\', '/');
  return path.startsWith('dist/') ? path : `dist/${path.replace(/\.ts$/, '.js')}`;
}

/** In whatever order: tap sorts them by name, so what takes long and has a late name may run on alone at the end. */
function chooseFiles(args) {
  const all = filesBelow('dist/test', '.test.js').sort();
  const named = args.filter((argument) => argument !== '--long').map(compiled);
  for (const file of named) {
    if (!all.includes(file)) throw new Stop(`There is no test ${file}; a test is a file test/**/*.test.ts.`);
  }
  const long = args.includes('--long');
  const files = named.length > 0 ? named : all.filter((file) => file.startsWith(longFolder) === long);
  if (files.length === 0) throw new Stop(`There are no ${long ? 'long ' : ''}tests in dist/test.`);
  return files;
}

/**
 * tap compiles its plugins into itself. It would notice by itself that they differ from .taprc's, but only after it has
 * started with the old ones, so it is built beforehand. What it is built with stands in the built file.
 */
async function buildTap() {
  const isStale = () => readOrNull(at(builtTap))?.match(/@tapjs\/(typescript|mock)/) !== null;
  if (!isStale()) return;
  await oneAtATime(async () => {
    if (!isStale()) return;
    const { ok, how, stdout, stderr } = await runTool('tap', ['build'], { stdio: ['ignore', 'pipe', 'pipe'] });
    if (!ok) throw new Stop(`${stdout}${stderr}\ntap could not be built with the plugins of .taprc: tap build ${how}.`);
  });
}

async function runTap(files) {
  // A file per process, because two runs in one clone must not count each other's results.
  const output = `.tap/output-${process.pid}.tap`;
  mkdirSync(at('.tap'), { recursive: true });
  const timeout = files.some((file) => file.startsWith(longFolder)) ? [`--timeout=${longTimeoutSeconds}`] : [];
  const args = ['run', `--output-file=${output}`, ...timeout, ...files];
  const { ok, how } = await (process.stdout.isTTY ? runTool('tap', args) : runTapForLog(args));
  const text = readOrNull(at(output)) ?? '';
  rmSync(at(output), { force: true });
  return { ok, how, text };
}

/** A reporter that repaints its summary would fill a log with it; `min` only says what failed. */
function runTapForLog(args) {
  // It turns a cursor on that there isn't, without ending the line: whatever comes next would not stand alone.
  const showCursor = '\x1b[?25h';
  const onOutput = (chunk) => process.stdout.write(chunk.replaceAll(showCursor, ''));
  return runTool('tap', [...args, '--reporter=min'], { stdio: ['inherit', 'pipe', 'inherit'], onOutput });
}

await endWith(async () => {
  const { closingLine, countTap } = await import(counter);
  const files = chooseFiles(process.argv.slice(2));
  await buildTap();
  say(`Running ${files.length} test file${files.length === 1 ? '' : 's'}.`);
  const { ok, how, text } = await runTap(files);
  const count = countTap(text, files);
  for (const test of count.skipped) say(`skipped: ${test}`);
  for (const note of count.notes) say(`failed: ${note}`);
  if (!ok && count.failed === 0) {
    say(`tap ${how} though no test failed.`);
    count.failed = 1;
  }
  if (!ok || count.failed > 0) process.exitCode = 1;
  // On stdout and last, after everything that went to either stream: scripts read it from there.
  process.stdout.write(`${closingLine(count)}\n`);
});
