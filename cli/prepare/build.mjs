// Compiles changed source files to dist. Each output depends on one source file only (`isolatedModules` in
// tsconfig.json guarantees this), so nothing else need be tracked. Types are erased, not checked: `npm run check`
// checks them. bundles.mjs also bundles the modules that a start loads.
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleFolders, bundleInputs, bundlePackages, bundleProgram, importBundles } from './bundles.mjs';
import { at, filesBelow, fingerprint, readOrNull, Stop, say, sourceFiles } from './workplace.mjs';

/** Removed before anything changes and written last, so dist is complete if this file exists. */
const stampFile = at('dist', '.lockgate-build');
/** A developer who runs tsc leaves this file. Then dist has files that the stamp does not list. */
const tscTrace = at('dist', 'tsconfig.tsbuildinfo');

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
  const { dependencies } = JSON.parse(readOrNull(at('package.json')));
  return fingerprint([dependencies.esbuild, readOrNull(fileURLToPath(import.meta.url)), ...bundleInputs()]);
}

/** The fingerprints of the source files that dist was compiled from. (A fresh clone has new file times.) */
function readStamp() {
  try {
    const { compiler, files } = JSON.parse(readOrNull(stampFile) ?? 'null');
    const areBundlesThere = bundleFolders.every((folder) => existsSync(at(folder)));
    const isUsable = compiler === compilerStamp() && !existsSync(tscTrace) && areBundlesThere;
    return isUsable ? files : {};
  } catch {
    return {};
  }
}

/** The source files of `scope` (`product`, or `all` with the tests) that changed, and those that no longer exist. */
function changes(scope) {
  const stamp = readStamp();
  const files = {};
  const changed = [];
  for (const path of sourceFiles(scope)) {
    const text = readOrNull(at(path));
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
  const isFromNothing = Object.keys(readStamp()).length === 0;
  const esbuild = await import('esbuild');
  try {
    const outputs = await compileAll(changed, esbuild);
    rmSync(stampFile, { force: true });
    rmSync(tscTrace, { force: true });
    if (isFromNothing) await bundlePackages(esbuild);
    for (const path of removed) delete files[path];
    for (const { path, code, map } of outputs) write(path, code, map);
    sweep(files);
    await bundleProgram(esbuild);
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
  for (const { reason } of failed) for (const error of reason.errors) say(sentence(error));
  if (failed.length === 0) return results.map(({ value }) => value);
  // Without its stamp dist no longer counts as up to date.
  rmSync(stampFile, { force: true });
  throw new Stop(`${failed.length} source files can't be compiled; the errors are above.`);
}

function sentence({ location, text }) {
  return location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text;
}

function write(path, code, map) {
  const target = outputOf(path);
  const folder = dirname(target);
  const source = relative(folder, path).replaceAll('\\', '/');
  const mapName = `${target.slice(folder.length + 1)}.map`;
  mkdirSync(at(folder), { recursive: true });
  writeFileSync(at(target), `${importBundles(code, target)}//# sourceMappingURL=${mapName}\n`);
  writeFileSync(at(`${target}.map`), JSON.stringify({ ...JSON.parse(map), sources: [source] }));
}

function outputOf(path) {
  return `dist/${path.replace(/\.ts$/, '.js')}`;
}

/** Removes outputs without a source: node would still load them. */
function sweep(files) {
  const ours = new Set(Object.keys(files).map(outputOf));
  const folders = new Set();
  for (const path of [...filesBelow('dist', '.js'), ...filesBelow('dist', '.js.map')]) {
    const isBundle = bundleFolders.some((folder) => path.startsWith(`${folder}/`));
    if (isBundle || ours.has(path.replace(/\.map$/, ''))) continue;
    rmSync(at(path));
    folders.add(dirname(path));
  }
  for (const folder of folders) removeEmpty(folder);
}

function removeEmpty(folder) {
  if (folder === 'dist' || readdirSync(at(folder)).length > 0) return;
  rmdirSync(at(folder));
  removeEmpty(dirname(folder));
}
