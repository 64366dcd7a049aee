// `npm run test:nodes`: runs the tests on each version of Node.js that is there, to see whether lockgate runs on it.
//
//   npm run test:nodes                     those in the path and in the folders of nvm, fnm and n
//   npm run test:nodes -- FILE …           these programs, such as /opt/node-22/bin/node
//
// The SQLite driver is compiled for one version. Where it can't be loaded, the tests run that do without a store: the
// protocol, the power model and its judge, traces, and virtual simulations. Ends with a line for each version.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { filesBelow, pathInClone, printProgress, reportFailure, root, UserError } from '../cli/prepare/workplace.mjs';

const DRIVER = 'better-sqlite3';
/** Tests of these folders are long, or check the build and not what runs. */
const LEFT_OUT = ['dist/test/long/', 'dist/test/check/'];
/** What the compiled files import, and the compiled files that they start as threads or processes. */
const importPattern = /(?:\bfrom|\bimport|\bimport\(|\brequire\()\s*"([^"]+)"/g;
const startPattern = /\b(?:program\/main\.js|Worker\(|LOCKGATE\b)/;
/** The closing line of the tests' runner. */
const closingPattern = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/m;

/** The programs `node` in the path and in the folders of version managers, each once. */
function foundNodes() {
  const home = homedir();
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...below(join(process.env.NVM_DIR ?? join(home, '.nvm'), 'versions/node'), 'bin'),
    ...below(join(home, '.local/share/fnm/node-versions'), 'installation/bin'),
    ...below(join(process.env.N_PREFIX ?? '/usr/local', 'n/versions/node'), 'bin'),
  ];
  // An empty part of the path means the current folder, whose programs nobody has chosen.
  const files = folders.filter(isAbsolute).map((folder) => join(folder, 'node'));
  return [
    ...new Set([process.execPath, ...files.filter((file) => existsSync(file))].map((file) => realpathSync(file))),
  ];
}

/** For each entry of a folder, a folder in it; none if there is no such folder. */
function below(parent, inside) {
  return existsSync(parent) ? readdirSync(parent).map((name) => join(parent, name, inside)) : [];
}

/** Runs a program to its end. Throws a UserError if it can't be started. */
function output(node, args) {
  const result = spawnSync(node, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (result.error) throw new UserError(`${node} can’t be started: ${result.error.message}.`);
  return result;
}

/** Whether this program can load the SQLite driver. */
function hasDriver(node) {
  const code = `new (require(${JSON.stringify(DRIVER)}))(':memory:')`;
  return output(node, ['-e', code]).status === 0;
}

/** Whether a compiled file needs the driver, itself or by what it imports or starts. */
function needsStore(file, seen = new Set()) {
  if (seen.has(file)) return false;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  if (startPattern.test(text)) return true;
  return [...text.matchAll(importPattern)].some(([, name]) => {
    if (name === DRIVER) return true;
    const target = name.startsWith('.') ? resolve(dirname(file), name) : undefined;
    return target !== undefined && existsSync(target) && needsStore(target, seen);
  });
}

/** Runs the tests on one version. Returns the line about it, and whether all passed. */
function testOn(node) {
  const version = output(node, ['--version']).stdout.trim();
  const all = filesBelow('dist/test', '.test.js').filter((file) => !LEFT_OUT.some((left) => file.startsWith(left)));
  const files = hasDriver(node) ? all : all.filter((file) => !needsStore(pathInClone(file)));
  printProgress(`${version} (${node}): ${files.length} of ${all.length} files.`);
  const { status, stdout, stderr } = output(node, ['test/run.mjs', '--alone', ...files]);
  const [line = 'the tests did not end'] = closingPattern.exec(stdout) ?? [];
  if (status !== 0) process.stdout.write(`${stdout}${stderr}\n`);
  const share = files.length === all.length ? 'all files' : `the ${files.length} files without a store`;
  return { isPassed: status === 0, line: `${version}: ${line} (${share})` };
}

await reportFailure(async () => {
  const named = process.argv.slice(2);
  const results = (named.length > 0 ? named.map((file) => resolve(file)) : foundNodes()).map(testOn);
  for (const { line } of results) process.stdout.write(`${line}\n`);
  if (results.some(({ isPassed }) => !isPassed)) process.exitCode = 1;
});
