// Joins modules into few files, because a start otherwise loads some thousand: Node.js looks up, reads and compiles
// modules one by one, which took more than half of the CPU time of a gateway's start.
//
// dist/packages has each package of many files as one file, and the imports in dist point there. dist/program has our
// modules, joined to few files: `lockgate` runs from there. Tests import single modules, from the other folders of
// dist. Sources name packages and modules as usual.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { filesBelow, pathInClone, readOrNull } from './workplace.mjs';

/**
 * The bundled packages and the format of their modules. A package with a native part, one that finds files next to its
 * own, and one of few files stays in node_modules.
 */
const packageFormats = {
  '@fastify/fast-json-stringify-compiler': 'commonjs',
  '@fastify/swagger': 'commonjs',
  fastify: 'commonjs',
  got: 'esm',
  kysely: 'esm',
  mqtt: 'commonjs',
  'prom-client': 'commonjs',
  typebox: 'esm',
  'typebox/compile': 'esm',
  'typebox/value': 'esm',
};
export const packagesFolder = 'dist/packages';
/**
 * tap's bundle, which only a build with the tests makes: loading tap took a quarter of a second in each test file. The
 * stacks that tap shows leave out frames in a folder `node_modules/@tapjs`.
 */
export const tapBundle = 'dist/node_modules/@tapjs/tap.js';
/** What tap's bundle has in place of the package async-hook-domain, which is slow. */
const errorDomain = 'test/error-domain.mjs';
export const programFolder = 'dist/program';
/** The folders that every build fills. */
export const bundleFolders = [packagesFolder, programFolder];
/** All folders of bundles. */
export const allBundleFolders = [...bundleFolders, posix.dirname(tapBundle)];
/** What main.ts runs to start a gateway. */
export const gatewayBundle = `${programFolder}/lockgate.cjs`;
/** The program with which tests start a gateway in a separate process. */
const testGateway = 'dist/test/helpers/gateway/gateway-process.js';
/** Packages that only the build loads. */
export const buildPackages = ['esbuild', 'markdown-it'];
/** Packages with a native part, and those that find files next to their own. A bundle of everything leaves them out. */
export const unbundled = ['better-sqlite3', '@node-rs/argon2', '@fastify/swagger-ui', 'pino', 'esbuild'];
/**
 * The program that runs the bundle of the tests' gateway. late-optimization.cjs sets flags of V8 for short processes.
 */
const gatewayStart = `import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
const require = createRequire(import.meta.url);
require('../../test/late-optimization.cjs');
const { loadBundle } = require('../../cli/load-bundle.cjs');
loadBundle(fileURLToPath(new URL('./gateway-process.cjs', import.meta.url)), { keepsCode: 'at-exit' });
`;
/** The imports in esbuild's output: `from "x"`, `import "x"` and `import("x")`. */
const importPattern = /\b(from |import |import\()"([^".][^"]*)"/g;
/** Matches how a module of lockgate names the file of a thread that it starts. */
const threadFilePattern = /(?<=new Worker\()new URL\("\.\/([\w-]+)\.js", import\.meta\.url\)/g;
/** Defines `require`, with which the CommonJS modules in a bundle load the modules of Node.js. */
const banner = [
  "import { createRequire as makeRequire } from 'node:module';",
  'const require = makeRequire(import.meta.url);',
].join('\n');
const options = { bundle: true, platform: 'node', format: 'esm', target: 'es2023', logLevel: 'warning' };

/** What the bundles depend on besides the sources: the versions of all packages, and this file. */
export function bundleInputs() {
  return ['package-lock.json', 'cli/prepare/bundles.mjs', errorDomain].map((file) => readOrNull(pathInClone(file)));
}

/** The code of a file in dist (a path from the root) with its imports of bundled packages pointing at the bundles. */
export function importBundles(code, path) {
  const folder = posix.dirname(path);
  const bundleOf = (name) =>
    name === 'tap' ? tapBundle : name in packageFormats ? `${packagesFolder}/${name}.js` : null;
  return code.replace(importPattern, (match, start, name) => {
    const bundle = bundleOf(name);
    return bundle === null ? match : `${start}"${posix.relative(folder, bundle)}"`;
  });
}

/** Bundles tap, unless it is bundled already. */
export async function bundleTap({ build }, isFullBuild) {
  if (!isFullBuild && readOrNull(pathInClone(tapBundle)) !== null) return;
  await build({
    ...options,
    absWorkingDir: pathInClone(),
    entryPoints: ['tap'],
    outfile: tapBundle,
    alias: { 'async-hook-domain': pathInClone(errorDomain) },
    banner: { js: banner },
  });
}

/** Bundles the packages. Code that several of them use goes to a shared file. */
export async function bundlePackages({ build }) {
  rmSync(pathInClone(packagesFolder), { recursive: true, force: true });
  await build({
    ...options,
    absWorkingDir: pathInClone(),
    entryPoints: Object.keys(packageFormats).map((name) => ({ in: `bundle:${name}`, out: name })),
    plugins: [{ name: 'bundles', setup: readBundles }],
    outdir: packagesFolder,
    splitting: true,
    banner: { js: banner },
  });
}

/** An esbuild plugin that supplies each bundle's entry module, which exports everything that the package exports. */
function readBundles({ onResolve, onLoad }) {
  onResolve({ filter: /^bundle:/ }, ({ path }) => ({ path: path.slice('bundle:'.length), namespace: 'bundle' }));
  onLoad({ filter: /.*/, namespace: 'bundle' }, async ({ path: name }) => ({
    contents:
      packageFormats[name] === 'esm' ? esmEntry(name, await import(name)) : commonjsEntry(name, await import(name)),
    resolveDir: pathInClone(),
  }));
}

function esmEntry(name, exports) {
  const named = `export * from '${name}';`;
  return 'default' in exports ? `${named} export { default } from '${name}';` : named;
}

/** Lists the exported names: esbuild can't find those of a CommonJS module, so they come from importing it. */
function commonjsEntry(name, exports) {
  const names = Object.keys(exports).filter((each) => each !== 'default' && each !== 'module.exports');
  return `import all from '${name}'; export default all; export const { ${names.join(', ')} } = all;`;
}

/**
 * Compiled code whose threads start from their bundles in dist/program. `ownUrl` is an expression for the URL of a file
 * there.
 */
export function startBundledThreads(code, ownUrl) {
  return code.replace(threadFilePattern, (_, name) => `new URL("./${name}.cjs", ${ownUrl})`);
}

/** An esbuild plugin: modules of a bundle in dist/program start the bundles of their threads, which are there too. */
const bundledThreads = {
  name: 'bundled-threads',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]dist[\\/](?:gateway|cli)[\\/].*\.js$/ }, ({ path }) => {
      const code = readFileSync(path, 'utf8');
      const contents = startBundledThreads(code, 'import.meta.url');
      return contents === code ? null : { contents, loader: 'js' };
    });
  },
};

/**
 * Joins the compiled modules of the program, and those of each of its threads, in one folder. A module that is imported
 * on demand stays a separate file.
 */
export async function bundleProgram({ build }) {
  rmSync(pathInClone(programFolder), { recursive: true, force: true });
  await bundleThreads(build);
  const shared = {
    ...options,
    absWorkingDir: pathInClone(),
    packages: 'external',
    external: [`./${packagesFolder}/*`],
  };
  const files = { outdir: programFolder, entryNames: '[name]', chunkNames: '[name]-[hash]', sourcemap: true };
  const settings = { ...shared, ...files, sourcesContent: false };
  await build({ ...settings, entryPoints: ['dist/cli/main.js'], splitting: true, plugins: [bundledThreads] });
  await bundleGateway(build);
  if (readOrNull(pathInClone(testGateway)) !== null) await bundleTestGateway(build);
}

/**
 * Bundles each thread with its packages to one CommonJS file: a gateway starts two threads before it is ready, and
 * loading a thread's modules one by one took twice as much CPU time.
 */
async function bundleThreads(build) {
  const modules = ['dist/gateway', 'dist/cli'].flatMap((folder) => filesBelow(folder, '.js'));
  const threads = modules.flatMap((path) =>
    [...readOrNull(pathInClone(path)).matchAll(threadFilePattern)].map(
      ([, name]) => `${posix.dirname(path)}/${name}.js`,
    ),
  );
  await build({
    ...options,
    absWorkingDir: pathInClone(),
    entryPoints: threads,
    external: unbundled,
    format: 'cjs',
    define: { 'import.meta.url': 'ownUrl' },
    banner: { js: "const ownUrl = require('node:url').pathToFileURL(__filename).href;" },
    outdir: programFolder,
    entryNames: '[name]',
    outExtension: { '.js': '.cjs' },
    sourcemap: true,
    sourcesContent: false,
    plugins: [bundledThreads],
  });
}

/** Bundles what main.ts runs, with all packages, for load-bundle.cjs, which also keeps the compiled code. */
async function bundleGateway(build) {
  await bundleCommonjs(build, {
    stdin: { contents: "export { runProcess } from './dist/cli/process.js';", resolveDir: pathInClone() },
    outfile: gatewayBundle,
    sourcemap: 'linked',
    sourcesContent: false,
  });
}

/** Bundles the tests' gateway in the same way: tests start it some hundred times. */
async function bundleTestGateway(build) {
  const name = posix.basename(testGateway, '.js');
  await bundleCommonjs(build, { entryPoints: [testGateway], outfile: `${programFolder}/${name}.cjs` });
  writeFileSync(pathInClone(programFolder, `${name}.js`), gatewayStart);
}

/** Bundles modules and packages as one CommonJS file, and writes it with its source map, if there is one. */
async function bundleCommonjs(build, settings) {
  const { outputFiles } = await build({
    ...options,
    absWorkingDir: pathInClone(),
    external: unbundled,
    format: 'cjs',
    // A CommonJS file has no import.meta: load-bundle.cjs passes these two to the bundle.
    define: { 'import.meta.url': '__ownUrl', 'import.meta.resolve': '__resolveUrl' },
    // A script outside Node's loaders cannot import: modules that code imports on demand are required.
    supported: { 'dynamic-import': false },
    write: false,
    plugins: [bundledThreads],
    ...settings,
  });
  for (const { path, text } of outputFiles) writeFileSync(path, path.endsWith('.map') ? text : toAscii(text));
}

/**
 * JavaScript with its other characters escaped, which are in comments and regular expressions: V8 keeps a text of ASCII
 * characters in half the memory.
 */
export function toAscii(code) {
  return code.replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
