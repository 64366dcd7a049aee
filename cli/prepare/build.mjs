// Compiles the sources to dist, file by file: those that changed since, and no others. Each file's output depends on
// that file alone (tsconfig.json holds the sources to it with `isolatedModules`), so there is nothing else to track.
// Types are erased here, not checked: `npm run check` checks them. What a start loads is bundled too (bundles.mjs).
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleFolders, bundleInputs, bundlePackages, bundleProgram, importBundles } from './bundles.mjs';
import { at, filesBelow, fingerprint, readOrNull, Stop, say, sourceFiles } from './workplace.mjs';

/** Written last, and taken away before anything changes, so where it is, dist is whole. */
const stampFile = at('dist', '.lockgate-build');
/** What tsc leaves behind when it is run by hand: then dist holds files that the stamp knows nothing of. */
const tscTrace = at('dist', 'tsconfig.tsbuildinfo');

const options = {
  loader: 'ts',
  format: 'esm',
  target: 'es2023',
  sourcemap: true,
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, useDefineForClassFields: true } },
};

/** The compiler, how it is called, and the bundled packages: when these change, every file is compiled. */
function compilerStamp() {
  const { dependencies } = JSON.parse(readOrNull(at('package.json')));
  return fingerprint([dependencies.esbuild, readOrNull(fileURLToPath(import.meta.url)), ...bundleInputs()]);
}

/** What dist was compiled from: a fingerprint of each source file. Times say nothing: a fresh clone has new ones. */
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

/** The files of `scope` (`product`, or `all` with the tests) that differ from dist, and what dist has too many of. */
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

/** True when dist holds exactly what the present sources of `scope` compile to. */
export function isBuilt(scope) {
  const { changed, removed } = changes(scope);
  return changed.length + removed.length === 0;
}

/** What is left to do for `scope`, as `{ title, work }`, or null when dist is up to date. */
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

/** Compiles in memory, so that dist stays as it was when one file has an error. */
async function compileAll(sources, { transform }) {
  const results = await Promise.allSettled(
    sources.map(async ({ path, text }) => ({ path, ...(await transform(text, { ...options, sourcefile: path })) })),
  );
  const failed = results.filter(({ status }) => status === 'rejected');
  for (const { reason } of failed) if (!reason.errors) throw reason;
  for (const { reason } of failed) for (const error of reason.errors) say(sentence(error));
  if (failed.length === 0) return results.map(({ value }) => value);
  // Without its stamp dist is no longer taken for current by anybody.
  rmSync(stampFile, { force: true });
  throw new Stop(`${failed.length} of the source files can't be compiled, for the reasons above.`);
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

/** A test or module whose source is gone would otherwise go on running from dist. */
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
