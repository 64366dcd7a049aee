// Bundles the pages of the console (gateway/console/page) into dist/console: scripts, style sheets and map data, with a
// hash of the content in each name, so that browsers may keep them for ever. manifest.json says which files the page of
// each entry loads. Each file is compressed here once, so that a gateway's start need not do it.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { leafletPlugin, mapDataPlugin, protobufPlugin } from './page-parts.mjs';
import { filesBelow, pathInClone, readOrNull } from './workplace.mjs';

/** Where the pages are, as a path from the root. */
export const pagesFolder = 'dist/console';
/** The path below which the gateway serves the folder. */
const publicPath = '/console/';
const sourceFolder = 'gateway/console/page';
/** A page for each port, the workers, and the style sheet that both pages share. */
const entries = {
  operator: 'operator.tsx',
  merchant: 'merchant.tsx',
  'live-worker': 'live-worker.ts',
  'trace-worker': 'trace-worker.ts',
  console: 'style/console.css',
};

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
  // A part of Leaflet that page-parts.mjs leaves out fails the build instead of the page.
  logOverride: { 'import-is-undefined': 'error' },
  metafile: true,
  loader: { '.png': 'file', '.svg': 'file', '.geojson': 'file' },
  entryNames: '[name]-[hash]',
  chunkNames: 'part-[hash]',
  assetNames: '[name]-[hash]',
  legalComments: 'linked',
  publicPath,
};

/** What the pages depend on besides their sources: this file, and those that choose parts and make the map's data. */
export function pageInputs() {
  return ['pages.mjs', 'page-parts.mjs', 'map-data.mjs'].map((name) => readOrNull(pathInClone('cli', 'prepare', name)));
}

/** Bundles the pages, writes the manifest, and compresses new files. */
export async function bundlePages({ build }) {
  const { metafile } = await build({
    ...options,
    absWorkingDir: pathInClone(),
    entryPoints: Object.entries(entries).map(([out, file]) => ({ out, in: `${sourceFolder}/${file}` })),
    outdir: pagesFolder,
    // proto/ uses Node's Buffer for base64 and UTF-8.
    plugins: [leafletPlugin, protobufPlugin, mapDataPlugin],
    inject: [`${sourceFolder}/buffer.ts`],
  });
  const manifest = Object.fromEntries(Object.keys(entries).map((name) => [name, filesOfEntry(name, metafile.outputs)]));
  const files = Object.keys(metafile.outputs).map((path) => path.slice(pagesFolder.length + 1));
  writeFileSync(pathInClone(pagesFolder, 'manifest.json'), JSON.stringify({ entries: manifest, files }, null, 2));
  removeStaleFiles(files);
  await Promise.all(files.map(compress));
}

/** The file of an entry, and the scripts that it always imports. */
function filesOfEntry(name, outputs) {
  const nameOf = (path) => path.slice(pagesFolder.length + 1);
  const [file, output] = Object.entries(outputs).find(
    ([, { entryPoint }]) => entryPoint === `${sourceFolder}/${entries[name]}`,
  );
  const imports = output.imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => nameOf(path));
  return { file: nameOf(file), imports };
}

/** Removes what earlier builds left behind. */
function removeStaleFiles(files) {
  const expected = new Set(files.flatMap((file) => [file, `${file}.br`, `${file}.gz`]).concat('manifest.json'));
  for (const path of filesBelow(pagesFolder, ''))
    if (!expected.has(path.slice(pagesFolder.length + 1))) rmSync(pathInClone(path));
}

/** Writes compressed copies of a file, by brotli and gzip. Its name has its hash, so an existing copy is up to date. */
async function compress(file) {
  const path = pathInClone(pagesFolder, file);
  if (existsSync(`${path}.br`) && existsSync(`${path}.gz`)) return;
  const content = readFileSync(path);
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  writeFileSync(`${path}.br`, await promisify(brotliCompress)(content, quality));
  writeFileSync(`${path}.gz`, await promisify(gzip)(content, { level: 9, memLevel: 9 }));
}
