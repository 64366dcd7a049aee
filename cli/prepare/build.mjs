// Compiles changed source files to dist. Each output depends on one source file only (`isolatedModules` in
// tsconfig.json guarantees this), so nothing else need be tracked. Types are erased, not checked: `npm run check`
// checks them. bundles.mjs also bundles the modules that a start loads, pages.mjs the pages of the console, and help/
// renders the documentation.
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  allBundleFolders,
  bundleFolders,
  bundleInputs,
  bundlePackages,
  bundleProgram,
  bundleTap,
  importBundles,
} from './bundles.mjs';
import { helpFolder, helpInputs, renderHelp } from './help/help.mjs';
import { bundlePages, pageInputs, pagesFolder } from './pages.mjs';
import {
  bundledFiles,
  filesBelow,
  fingerprint,
  pathInClone,
  printProgress,
  readOrNull,
  sourceFiles,
  UserError,
} from './workplace.mjs';

/**
 * Names the source files, and their fingerprints, that dist was compiled from. It is removed before dist changes and
 * written last, so dist is complete if this file exists.
 */
const stampFile = pathInClone('dist', '.lockgate-build');
/** tsc writes this file when a developer runs tsc directly. Then dist has files that the stamp does not list. */
const tscStateFile = pathInClone('dist', 'tsconfig.tsbuildinfo');

const options = {
  loader: 'ts',
  format: 'esm',
  target: 'es2023',
  sourcemap: true,
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, useDefineForClassFields: true } },
};

/** A fingerprint of the compiler's version and options. When it changes, every file is compiled. */
function compilerStamp() {
  const { dependencies } = JSON.parse(readOrNull(pathInClone('package.json')));
  return fingerprint([
    dependencies.esbuild,
    readOrNull(fileURLToPath(import.meta.url)),
    ...bundleInputs(),
    ...pageInputs(),
  ]);
}

/**
 * The fingerprints of the source files that dist was compiled from; none if everything must be compiled. File times
 * would not do: every file of a fresh clone is new.
 */
function readStamp() {
  try {
    const { compiler, files } = JSON.parse(readOrNull(stampFile) ?? 'null');
    const areBundlesThere = [...bundleFolders, pagesFolder, helpFolder].every((folder) =>
      existsSync(pathInClone(folder)),
    );
    const isUsable = compiler === compilerStamp() && !existsSync(tscStateFile) && areBundlesThere;
    return isUsable ? files : {};
  } catch {
    return {};
  }
}

/** The source files of `scope` (`product`, or `all` with the tests) that changed, and the paths of those deleted. */
function changes(scope) {
  const stamp = readStamp();
  const files = {};
  const changed = [];
  for (const path of [...sourceFiles(scope), ...bundledFiles(), ...helpInputs()]) {
    const text = readOrNull(pathInClone(path));
    files[path] = fingerprint([text]);
    if (files[path] !== stamp[path]) changed.push({ path, text });
  }
  const inScope = (path) => scope === 'all' || !path.startsWith('test/');
  const removed = Object.keys(stamp).filter((path) => inScope(path) && !(path in files));
  return { changed, removed, files: { ...stamp, ...files } };
}

/** Whether dist matches the current sources of `scope`. */
export function isBuilt(scope) {
  const { changed, removed } = changes(scope);
  return changed.length + removed.length === 0;
}

/** The compile step for `scope`, as `{ title, work }`; null if dist is up to date. */
export function buildStep(scope) {
  const { changed, removed } = changes(scope);
  if (changed.length + removed.length === 0) return null;
  const files = changed.length === 1 ? '1 source file' : `${changed.length} source files`;
  return { title: `Compiling ${files} to dist`, work: () => build(scope) };
}

async function build(scope) {
  const { changed, removed, files } = changes(scope);
  const isFullBuild = Object.keys(readStamp()).length === 0;
  const esbuild = await import('esbuild');
  try {
    const outputs = await compileAll(
      changed.filter(({ path }) => isCompiled(path)),
      esbuild,
    );
    rmSync(stampFile, { force: true });
    rmSync(tscStateFile, { force: true });
    if (isFullBuild) await bundlePackages(esbuild);
    if (scope === 'all') await bundleTap(esbuild, isFullBuild);
    for (const path of removed) delete files[path];
    for (const { path, code, map } of outputs) write(path, code, map);
    removeStaleOutputs(files);
    await bundleProgram(esbuild);
    await bundlePages(esbuild);
    await renderHelp(esbuild);
    writeFileSync(stampFile, JSON.stringify({ compiler: compilerStamp(), files }));
  } finally {
    await esbuild.stop();
  }
}

/** Compiles in memory, so that dist does not change if a file has an error. */
async function compileAll(sources) {
  const { transform } = await import('esbuild');
  const results = await Promise.allSettled(
    sources.map(async ({ path, text }) => ({ path, ...(await transform(text, { ...options, sourcefile: path })) })),
  );
  const failed = results.filter(({ status }) => status === 'rejected');
  for (const { reason } of failed) if (!reason.errors) throw reason;
  for (const { reason } of failed) for (const error of reason.errors) printProgress(errorText(error));
  if (failed.length === 0) return results.map(({ value }) => value);
  // Without its stamp dist no longer counts as up to date.
  rmSync(stampFile, { force: true });
  throw new UserError(`${failed.length} source files can't be compiled; the errors are above.`);
}

/** One of esbuild's errors with its place, such as `cli/main.ts:3:5: …`. */
function errorText({ location, text }) {
  return location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text;
}

/** Writes the output and the source map of a source file. */
function write(path, code, map) {
  const target = outputOf(path);
  const folder = dirname(target);
  const source = relative(folder, path).replaceAll('\\', '/');
  const mapName = `${target.slice(folder.length + 1)}.map`;
  mkdirSync(pathInClone(folder), { recursive: true });
  writeFileSync(pathInClone(target), `${importBundles(code, target)}//# sourceMappingURL=${mapName}\n`);
  writeFileSync(pathInClone(`${target}.map`), JSON.stringify({ ...JSON.parse(map), sources: [source] }));
}

/** Whether a source file becomes a file of its own in dist. */
function isCompiled(path) {
  return path.endsWith('.ts') && !path.endsWith('.d.ts');
}

function outputOf(path) {
  return `dist/${path.replace(/\.ts$/, '.js')}`;
}

/** Removes outputs without a source: Node.js would still load them. */
function removeStaleOutputs(files) {
  const expected = new Set(Object.keys(files).filter(isCompiled).map(outputOf));
  const folders = new Set();
  for (const path of [...filesBelow('dist', '.js'), ...filesBelow('dist', '.js.map')]) {
    const isBundle = [...allBundleFolders, pagesFolder, helpFolder].some((folder) => path.startsWith(`${folder}/`));
    if (isBundle || expected.has(path.replace(/\.map$/, ''))) continue;
    rmSync(pathInClone(path));
    folders.add(dirname(path));
  }
  for (const folder of folders) removeIfEmpty(folder);
}

function removeIfEmpty(folder) {
  // Removing another folder may have removed this one, its parent.
  if (folder === 'dist' || !existsSync(pathInClone(folder)) || readdirSync(pathInClone(folder)).length > 0) return;
  rmdirSync(pathInClone(folder));
  removeIfEmpty(dirname(folder));
}
