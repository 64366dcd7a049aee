// Runs a bundle: one CommonJS file with many modules, together with V8's compiled code of it, which Node.js 20 does not
// store by itself. Loading and compiling took half of the CPU time of a gateway's start.
//
// The compiled code is in a file next to the bundle. V8 refuses it if another version of Node.js made it, or other
// flags; then the bundle is compiled as usual, and the code is stored again. main.ts and the tests' runners use this.
'use strict';
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');

/** The bundle's parameters: those of CommonJS, and the functions that bundling puts in place of `import.meta`. */
const PARAMETERS = 'exports, require, module, __ownUrl, __fileUrl, __resolveUrl, __import';
const root = path.join(__dirname, '..');
/** The delay before the compiled code is written: by then a gateway has started. */
const KEEP_AFTER_MS = 2000;

/**
 * Runs the bundle in this file (an absolute path), of ASCII characters only, and returns what it exports. `codeFile`
 * has the compiled code; processes with other flags of V8 need another file. If the file is missing or unusable,
 * `keepsCode` says when the process writes it: `never`; `once-started`, if it still runs after two seconds; or
 * `at-exit`, which is the same, but a shorter process writes it as it exits.
 */
exports.loadBundle = (file, { keepsCode, codeFile = `${file}.code` }) => {
  const code = readCode(codeFile);
  // Read as Latin-1, because V8 keeps such a text in half the memory.
  const source = readFileSync(file, 'latin1');
  const text = `(function (${PARAMETERS}) {${source}\n})`;
  const script = new vm.Script(text, { filename: file, cachedData: code });
  if (keepsCode !== 'never' && (code === undefined || script.cachedDataRejected)) {
    const write = () => writeCode(codeFile, script);
    if (keepsCode === 'at-exit') process.once('exit', write);
    const writeNow = () => {
      process.removeListener('exit', write);
      write();
    };
    setTimeout(writeNow, KEEP_AFTER_MS).unref();
  }
  const ownUrl = pathToFileURL(file).href;
  const fileUrl = (name) => pathToFileURL(path.join(root, name)).href;
  const ownRequire = createRequire(file);
  const resolveUrl = (name) => pathToFileURL(ownRequire.resolve(name)).href;
  const importUrl = (url) => import(url);
  const bundle = { exports: {} };
  script.runInThisContext()(bundle.exports, ownRequire, bundle, ownUrl, fileUrl, resolveUrl, importUrl);
  return bundle.exports;
};

function readCode(codeFile) {
  try {
    return readFileSync(codeFile);
  } catch {
    return undefined;
  }
}

/** Replaces the file in one step: another process may be reading it. A folder that can't be written stays as it is. */
function writeCode(codeFile, script) {
  const unfinished = `${codeFile}.${process.pid}`;
  try {
    writeFileSync(unfinished, script.createCachedData());
    renameSync(unfinished, codeFile);
  } catch {
    // The next start compiles again.
  }
}
