/**
 * An error that nobody caught fails the test that it comes from, even if that test has ended or runs inside another one
 * (test/error-domain.mjs).
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { root } from '../helpers/house/our-files.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** The compiled tap that test files import. */
const TAP = pathToFileURL(path.join(root, 'dist/node_modules/@tapjs/tap.js')).href;
const PROGRAM = `
import t from '${TAP}';
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const throwLater = (message, ms) => setTimeout(() => { throw new Error(message); }, ms);
t.test('timer', async (t) => { throwLater('of a timer', 1); await wait(20); });
t.test('outer', async (t) => {
  await t.test('promise', async (t) => {
    t.pass('fine');
    void Promise.reject(new Error('of a promise'));
    await wait(5);
  });
  await t.test('neighbour', async (t) => { t.pass('fine'); });
});
t.test('ended', async (t) => { throwLater('after the end', 5); });
`;

t.test('an error that nobody caught fails the test that it comes from, and no other', async (t) => {
  const file = path.join(tempFolder(t), 'errors.test.mjs');
  writeFileSync(file, PROGRAM);
  const { stdout, status } = spawnSync(process.execPath, [file], { encoding: 'utf8' });
  t.equal(status, 1);
  const lines = [...stdout.matchAll(/^ *((?:not )?ok) \d+ - ([^#\n]*?)(?: #.*)?$/gm)];
  const results = lines.map(([, result, name]) => `${result} ${name}`).filter((line) => line !== 'ok fine');
  // At the end tap repeats a line of a failed test.
  t.same(
    [...new Set(results)],
    [
      'not ok of a timer',
      'not ok timer',
      'not ok of a promise',
      'not ok promise',
      'ok neighbour',
      'not ok outer',
      'ok ended',
      'not ok after the end',
    ],
  );
});
