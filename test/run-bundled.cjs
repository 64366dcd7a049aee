// Runs test files (compiled files, paths from the root) from the bundle that bundle.mjs makes, one after another. With
// `--write-code` in front of them it also stores the code that V8 compiled, for the tests that start later.
'use strict';
const path = require('node:path');
require('./late-optimization.cjs');
const { loadBundle } = require('../cli/load-bundle.cjs');

const root = path.join(__dirname, '..');
const args = process.argv.slice(2);
const writesCode = args[0] === '--write-code';
const files = writesCode ? args.slice(1) : args;
// tap names a test by the program's file.
process.argv.splice(1, process.argv.length, path.join(root, files[0]));
// Writes block: otherwise tap holds lines back while the reader of a pipe is busy, and a test that captures stdout gets
// them.
process.stdout._handle?.setBlocking?.(true);
const { runTests, tests } = loadBundle(path.join(root, 'dist/tests/all.cjs'), {
  keepsCode: writesCode ? 'at-exit' : 'never',
});
runTests(tests, files);
