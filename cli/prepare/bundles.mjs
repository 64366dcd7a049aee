// Bundles what a start would otherwise load from some thousand files: Node.js looks up, reads and compiles modules one
// by one, which took more than half of the CPU time of a gateway's start.
//
// dist/packages has each package of many files as one file, and the imports in dist point there. dist/program has our
// modules, joined to few files: `lockgate` runs from there. Tests import single modules and do so from the rest of
// dist. Sources name packages and modules as usual.
import { rmSync } from 'node:fs';
import { posix } from 'node:path';
import { at, filesBelow, readOrNull } from './workplace.mjs';

/**
 * The bundled packages and the format of their modules. A package with a native part, one that finds files next to its
 * own, and one of few files stays in node_modules.
 */
const formats = {
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
const packagesFolder = 'dist/packages';
const programFolder = 'dist/program';
export const bundleFolders = [packagesFolder, programFolder];
/** The gateway that tests start in a process of its own. */
const testGateway = 'dist/test/helpers/gateway/gateway-process.js';
/** The imports in what esbuild makes of a source: `from "x"`, `import "x"` and `import("x")`. */
const imports = /\b(from |import |import\()"([^".][^"]*)"/g;
/** How a module of ours names the file of a thread that it starts. */
const threadFile = /new Worker\(new URL\("\.\/([\w-]+\.js)", import\.meta\.url\)/g;
/** CommonJS modules in a bundle ask for the modules of Node.js with `require`. */
const banner = `import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);`;
const options = { bundle: true, platform: 'node', format: 'esm', target: 'es2023', logLevel: 'warning' };

/** What the bundles depend on besides the sources: the versions of all packages, and this file. */
export function bundleInputs() {
  return [readOrNull(at('package-lock.json')), readOrNull(at('cli', 'prepare', 'bundles.mjs'))];
}

/** The code of a file in dist (a path from the root) with its imports of bundled packages pointing at the bundles. */
export function importBundles(code, path) {
  const toBundles = posix.relative(posix.dirname(path), packagesFolder);
  return code.replace(imports, (all, start, name) => (name in formats ? `${start}"${toBundles}/${name}.js"` : all));
}

/** Bundles the packages. What several of them use is in a file that they share. */
export async function bundlePackages({ build }) {
  rmSync(at(packagesFolder), { recursive: true, force: true });
  await build({
    ...options,
    absWorkingDir: at(),
    entryPoints: Object.keys(formats).map((name) => ({ in: `bundle:${name}`, out: name })),
    plugins: [{ name: 'bundles', setup: readBundles }],
    outdir: packagesFolder,
    splitting: true,
    banner: { js: banner },
  });
}

/** Gives esbuild the module at the top of each package's bundle. */
function readBundles({ onResolve, onLoad }) {
  onResolve({ filter: /^bundle:/ }, ({ path }) => ({ path: path.slice('bundle:'.length), namespace: 'bundle' }));
  onLoad({ filter: /.*/, namespace: 'bundle' }, async ({ path: name }) => ({
    contents: formats[name] === 'esm' ? esmEntry(name, await import(name)) : commonjsEntry(name, await import(name)),
    resolveDir: at(),
  }));
}

function esmEntry(name, exports) {
  const rest = `export * from '${name}';`;
  return 'default' in exports ? `${rest} export { default } from '${name}';` : rest;
}

/** The names that a CommonJS module exports are known to Node.js only, so they are listed. */
function commonjsEntry(name, exports) {
  const names = Object.keys(exports).filter((each) => each !== 'default' && each !== 'module.exports');
  return `import all from '${name}'; export default all; export const { ${names.join(', ')} } = all;`;
}

/**
 * Joins the modules of the program and of each of its threads, as compiled in dist. All files are in one folder, where
 * a module finds its threads. What is imported when a command needs it is a file of its own and stays so.
 */
export async function bundleProgram({ build }) {
  rmSync(at(programFolder), { recursive: true, force: true });
  const modules = filesBelow('dist/gateway', '.js');
  const threads = modules.flatMap((path) =>
    [...readOrNull(at(path)).matchAll(threadFile)].map(([, file]) => posix.join(posix.dirname(path), file)),
  );
  const joined = { ...options, absWorkingDir: at(), packages: 'external', external: [`./${packagesFolder}/*`] };
  const files = { outdir: programFolder, entryNames: '[name]', chunkNames: '[name]-[hash]', sourcemap: true };
  const parts = { ...joined, ...files, sourcesContent: false };
  await build({ ...parts, entryPoints: ['dist/cli/main.js', ...threads], splitting: true });
  if (readOrNull(at(testGateway)) !== null) await build({ ...parts, entryPoints: [testGateway] });
}
