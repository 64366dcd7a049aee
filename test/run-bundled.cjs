// Runs a test file (its compiled file, a path from the root) from the bundle that bundle.mjs makes. With `--write-code`
// it also stores the code that V8 compiled, for the tests that start later.
'use strict';
const path = require('node:path');
const { loadBundle } = require('./load-bundle.cjs');

const root = path.join(__dirname, '..');
const [, , test, option] = process.argv;
// tap names a test by the program's file.
process.argv.splice(1, process.argv.length, path.join(root, test));
const tests = loadBundle(path.join(root, 'dist/tests/all.cjs'), { keepsCode: option === '--write-code' });
tests[test]();
