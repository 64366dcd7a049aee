// Joins the compiled test files and everything that they import to one file, dist/tests/all.cjs. Loading some 400
// modules one by one, and compiling them, took 0.6 s of CPU time of most test files. run-bundled.cjs runs a test from
// there.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { startBundledThreads, tapBundle, toAscii, unbundled } from '../cli/prepare/bundles.mjs';
// pathInClone: an absolute path in this clone of the repository. fingerprint: a hash of these texts.
import { fingerprint, pathInClone, readOrNull, UserError } from '../cli/prepare/workplace.mjs';

const bundleFile = 'dist/tests/all.cjs';
/**
 * A top-level `await` in compiled code, as a line without indentation that has `await` but not `async`: a CommonJS file
 * cannot have one. Such a test runs by itself.
 */
const topLevelAwait = /^(?! )(?!.*\basync\b).*\bawait\b/m;

/** The start of an import whose module is named by a variable, such as `import(file)`. */
const importOfVariable = /\bimport\((?=[a-z])/gi;

/** Which of the compiled test files (paths from the root) can be in the bundle. */
export function bundledOf(files) {
  return new Set(files.filter((file) => !topLevelAwait.test(readOrNull(pathInClone(file)))));
}

/** Bundles these test files, unless that is done already. @throws UserError if a file cannot be bundled */
export async function bundleTests(files) {
  const stampFile = pathInClone('dist', 'tests', 'stamp');
  const stamp = fingerprint([
    process.version,
    readOrNull(pathInClone('dist', '.lockgate-build')),
    readOrNull(pathInClone('test', 'bundle.mjs')),
    readOrNull(pathInClone('test', 'current-tap.mjs')),
    ...files,
  ]);
  if (readOrNull(stampFile) === stamp) return;
  rmSync(pathInClone('dist', 'tests'), { recursive: true, force: true });
  mkdirSync(pathInClone('dist', 'tests'), { recursive: true });
  // `false`: without a source map, which only a failure needs.
  const [{ text }] = await build(files, false);
  // As ASCII, because cli/load-bundle.cjs reads a bundle as Latin-1.
  writeFileSync(pathInClone(`${bundleFile}.new`), toAscii(text));
  renameSync(pathInClone(`${bundleFile}.new`), pathInClone(bundleFile));
  writeFileSync(stampFile, stamp);
}

/** A promise of the bundle's source map; null until the first failure needs it. */
let sourceMap = null;

/** Bundles the files again, with a source map. */
async function makeSourceMap(files) {
  const map = (await build(files, 'external')).find(({ path }) => path.endsWith('.map'));
  return new SourceMap(JSON.parse(map.text));
}

/** Replaces positions in the bundle by those in the sources. `files` are all files of the bundle. */
export async function withSourcePositions(text, files) {
  if (!text.includes('/all.cjs:')) return text;
  sourceMap ??= makeSourceMap(files);
  const sources = await sourceMap;
  // Such as `file:///clone/dist/tests/all.cjs:12:34`.
  return text.replace(/[^\s("']*\/all\.cjs:(\d+):(\d+)/g, (all, line, column) => {
    // The positions in a SourceMap count from 0, those in the text from 1.
    const { originalSource, originalLine, originalColumn } = sources.findEntry(Number(line) - 1, Number(column) - 1);
    if (originalSource === undefined) return all;
    return `${originalSource.replace(/^(\.\.\/)+/, '')}:${originalLine + 1}:${originalColumn + 1}`;
  });
}

/** esbuild's output files for a bundle that exports `tests`, a function for each file, and `runTests`. */
async function build(files, sourcemap) {
  const { build } = await import('esbuild');
  const entry = files.map((file) => `${JSON.stringify(file)}: () => require(${JSON.stringify(`./${file}`)})`);
  try {
    const { outputFiles } = await build({
      bundle: true,
      platform: 'node',
      format: 'cjs',
      target: 'es2023',
      legalComments: 'none',
      logLevel: 'silent',
      absWorkingDir: pathInClone(),
      stdin: {
        contents: `export { runTests } from './test/current-tap.mjs'; export const tests = {${entry.join(',\n')}};`,
        resolveDir: pathInClone(),
      },
      outfile: bundleFile,
      write: false,
      sourcemap,
      external: unbundled,
      // A script outside Node's loaders cannot import: modules of Node.js that code imports on demand are required.
      supported: { 'dynamic-import': false },
      plugins: [
        { name: 'own-paths', setup: keepOwnPaths },
        { name: 'current-tap', setup: importCurrentTap },
      ],
    });
    return outputFiles;
  } catch (error) {
    const [first] = error.errors ?? [];
    if (first === undefined) throw error;
    throw new UserError(`The tests can't be bundled: ${first.location?.file}:${first.location?.line}: ${first.text}`);
  }
}

/** An esbuild plugin: what imports tap gets the `t` of current-tap.mjs, the only importer of tap itself. */
function importCurrentTap({ onResolve, onLoad }) {
  const name = './test/current-tap.mjs';
  // Compiled files import tap's bundle, by its path (importBundles in bundles.mjs).
  onResolve({ filter: /[\\/]@tapjs[\\/]tap\.js$/ }, () => ({ path: name, namespace: 'current-tap' }));
  onResolve({ filter: /^tap$/ }, () => ({ path: pathInClone(tapBundle) }));
  onLoad({ filter: /^/, namespace: 'current-tap' }, () => ({
    contents: `export { currentTap as default } from ${JSON.stringify(name)};`,
    resolveDir: pathInClone(),
  }));
}

/**
 * An esbuild plugin: a module that reads `import.meta` gets the path of its own compiled file, not that of the bundle;
 * but threads start from their bundles.
 * Imports whose module is named at run time become calls of `__import`. cli/load-bundle.cjs provides the names with
 * `__`.
 */
function keepOwnPaths({ onLoad }) {
  onLoad({ filter: /[\\/]dist[\\/].*\.js$/ }, ({ path }) => {
    const code = readFileSync(path, 'utf8');
    if (!code.includes('import.meta') && code.search(importOfVariable) < 0) return null;
    const own = JSON.stringify(path.slice(pathInClone().length + 1).replaceAll('\\', '/'));
    const contents = startBundledThreads(code, '__fileUrl("dist/program/")')
      .replaceAll('import.meta.url', `__fileUrl(${own})`)
      .replaceAll('import.meta.filename', JSON.stringify(path))
      .replaceAll('import.meta.resolve', '__resolveUrl')
      .replaceAll(importOfVariable, '__import(');
    return { contents, loader: 'js' };
  });
}
