// Bundles the pages of the console (gateway/console/page) into dist/console: scripts, style sheets and map data, with a
// hash of the content in each name, so that browsers may keep them for ever. manifest.json says which files the page of
// each entry loads. Each file is compressed here once, so that a gateway's start need not do it.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { clonePath, filesBelow, readOrNull } from './workplace.mjs';

/** Where the pages are, as a path from the root. */
export const pagesFolder = 'dist/console';
/** The path below which the gateway serves the folder. */
const publicPath = '/console/';
/** A page for each port, and the worker that all tabs of a browser share. */
const entries = ['operator', 'merchant', 'live-worker', 'trace-worker'];
const sourceFolder = 'gateway/console/page';

const options = {
  bundle: true,
  splitting: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
  metafile: true,
  loader: { '.png': 'file', '.svg': 'file', '.geojson': 'file' },
  entryNames: '[name]-[hash]',
  chunkNames: 'part-[hash]',
  assetNames: '[name]-[hash]',
  legalComments: 'linked',
  publicPath,
};

/** What the pages depend on besides their sources: this file. */
export function pageInputs() {
  return [readOrNull(clonePath('cli', 'prepare', 'pages.mjs'))];
}

/** Bundles the pages, writes the manifest, and compresses new files. */
export async function bundlePages({ build }) {
  const { metafile } = await build({
    ...options,
    absWorkingDir: clonePath(),
    entryPoints: entries.map((name) => `${sourceFolder}/${entryFile(name)}`),
    outdir: pagesFolder,
    // proto/ uses Node's Buffer for base64 and UTF-8.
    plugins: [
      { name: 'one-build', setup: chooseBuilds },
      { name: 'map-data', setup: keepMapData },
    ],
    inject: [`${sourceFolder}/buffer.ts`],
  });
  const manifest = Object.fromEntries(entries.map((name) => [name, filesOfEntry(name, metafile.outputs)]));
  const files = Object.keys(metafile.outputs).map((path) => path.slice(pagesFolder.length + 1));
  writeFileSync(clonePath(pagesFolder, 'manifest.json'), JSON.stringify({ entries: manifest, files }, null, 2));
  removeOthers(files);
  await Promise.all(files.map(compress));
}

function entryFile(name) {
  const tsx = `${name}.tsx`;
  return existsSync(clonePath(sourceFolder, tsx)) ? tsx : `${name}.ts`;
}

/**
 * Chooses one build of a package for all imports: the CommonJS code of protobufjs would bring a second one of long, and
 * only Leaflet's module lets unused parts be left out.
 */
function chooseBuilds({ onResolve }) {
  const builds = { long: 'long/umd/index.js', leaflet: 'leaflet/dist/leaflet-src.esm.js' };
  onResolve({ filter: /^(long|leaflet)$/ }, ({ path }) => ({ path: clonePath('node_modules', builds[path]) }));
}

/** Map data is fetched when a map is shown, so importing it gives its address. */
function keepMapData({ onResolve, onLoad }) {
  onResolve({ filter: /^world-atlas\// }, ({ path }) => ({
    path: clonePath('node_modules', path),
    namespace: 'map-data',
  }));
  onLoad({ filter: /.*/, namespace: 'map-data' }, ({ path }) => ({ contents: readFileSync(path), loader: 'file' }));
}

/** The script of an entry, its style sheet or null, and the scripts that it always imports. */
function filesOfEntry(name, outputs) {
  const nameOf = (path) => path.slice(pagesFolder.length + 1);
  const [script, output] = Object.entries(outputs).find(
    ([, { entryPoint }]) => entryPoint === `${sourceFolder}/${entryFile(name)}`,
  );
  const imports = output.imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => nameOf(path));
  return { script: nameOf(script), style: output.cssBundle ? nameOf(output.cssBundle) : null, imports };
}

/** Removes what earlier builds left behind. */
function removeOthers(files) {
  const expected = new Set(files.flatMap((file) => [file, `${file}.br`, `${file}.gz`]).concat('manifest.json'));
  for (const path of filesBelow(pagesFolder, ''))
    if (!expected.has(path.slice(pagesFolder.length + 1))) rmSync(clonePath(path));
}

/** Writes a file compressed by brotli and gzip beside it. Its name has its hash, so this is done once. */
async function compress(file) {
  const path = clonePath(pagesFolder, file);
  if (existsSync(`${path}.br`) && existsSync(`${path}.gz`)) return;
  const content = readFileSync(path);
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  writeFileSync(`${path}.br`, await promisify(brotliCompress)(content, quality));
  writeFileSync(`${path}.gz`, await promisify(gzip)(content, { level: 9 }));
}
