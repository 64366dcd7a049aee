// Runs a bundle for tests: one CommonJS file with many modules, together with V8's compiled code of it, which
// Node.js 20 does not store by itself. Loading and compiling took half of the CPU time of a gateway's start.
//
// The compiled code is in a file next to the bundle. V8 refuses it if it was made by another version or with other
// flags; then the bundle is compiled as usual.
'use strict';
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { setFlagsFromString } = require('node:v8');
const vm = require('node:vm');

/** The bundle's parameters: those of CommonJS, and the functions that bundling puts in place of `import.meta`. */
const PARAMETERS = 'exports, require, module, __ownUrl, __fileUrl, __resolveUrl, __import';
const root = path.join(__dirname, '..');
/**
 * V8 optimizes a function after it has run this much bytecode, instead of 66 kB. Most tests end before optimized code
 * has saved what its compilation costs: with 500 kB they take 8 to 10 % less CPU time.
 */
const BYTES_BEFORE_OPTIMIZATION = 500_000;
/** The delay before the compiled code is written: by then a gateway has started. */
const KEEP_AFTER_MS = 2000;

/**
 * Runs the bundle in this file (an absolute path), of ASCII characters only, and returns what it exports. With
 * `keepsCode`, and if there is no compiled code yet, the process writes what is compiled after some time, or at its
 * exit if that comes first: tests kill most gateways.
 */
exports.loadBundle = (file, { keepsCode }) => {
  // First, since V8 refuses compiled code that was made with other flags.
  setFlagsFromString(`--interrupt-budget=${BYTES_BEFORE_OPTIMIZATION}`);
  const codeFile = `${file}.code`;
  const code = readCode(codeFile);
  // Read as Latin-1, because V8 keeps such a text in half the memory.
  const source = readFileSync(file, 'latin1');
  const text = `(function (${PARAMETERS}) {${source}\n})`;
  const script = new vm.Script(text, { filename: file, cachedData: code });
  if (keepsCode && code === undefined) {
    const write = () => writeCode(codeFile, script);
    process.once('exit', write);
    setTimeout(() => process.removeListener('exit', write) && write(), KEEP_AFTER_MS).unref();
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

/** Replaces the file at once: another process may be reading it. */
function writeCode(codeFile, script) {
  const unfinished = `${codeFile}.${process.pid}`;
  writeFileSync(unfinished, script.createCachedData());
  renameSync(unfinished, codeFile);
}
