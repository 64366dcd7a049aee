// Renders the help: the Markdown of docs/ and a few READMEs as static pages in dist/help, which the gateway serves and
// which any other web server could. The pages load nothing from elsewhere. The search runs in the browser, on one file
// with the text of all sections.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { gzipSync } from 'node:zlib';
import { filesBelow, fingerprint, pathInClone, readOrNull } from '../workplace.mjs';
import { helpSections, MENU_TITLES, pageAddress } from './page-list.mjs';
import { pageHtml } from './template.mjs';

/** Where the pages are, as a path from the project's folder. */
export const helpFolder = 'dist/help';
const ownFolder = 'cli/prepare/help';
/** Files that pages link to or show, and that are copied unchanged. */
const COPIED = /^(docs\/|proto\/lock\.proto$)/;
/** The type of files with any ending that TYPES lacks. */
const TEXT_TYPE = 'text/plain; charset=utf-8';
const TYPES = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  png: 'image/png',
  svg: 'image/svg+xml',
};
/** Smaller files, and pictures, are not compressed. */
const MIN_COMPRESSED_BYTES = 1000;

/** The files that the pages depend on, as paths from the project's folder. */
export function helpInputs() {
  const pages = helpSections().flatMap(({ files }) => files);
  const beside = filesBelow('docs', '').filter((file) => !file.startsWith('docs/man/'));
  return [...new Set([...pages, ...beside, 'proto/lock.proto', ...filesBelow(ownFolder, '')])].sort();
}

/** Renders the pages, unless they are there and were made from the same files. */
export async function renderHelp({ build }) {
  const stampFile = pathInClone(helpFolder, '.inputs');
  const stamp = fingerprint([...helpInputs().map((file) => readOrNull(pathInClone(file))), readOrNull(lockFile())]);
  if (readOrNull(stampFile) === stamp) return;
  rmSync(pathInClone(helpFolder), { recursive: true, force: true });
  const assets = await bundleAssets(build);
  // Imported here, since a fresh clone has no packages when this file is loaded.
  const { renderPage } = await import('./markdown.mjs');
  const { files, copies } = renderPages(renderPage, assets);
  const written = [...files, ...assets.map(({ name, text }) => [name, text])];
  for (const [name, text] of written) write(name, text);
  for (const source of copies) write(copyAddress(source), readFileSync(pathInClone(source)));
  const names = [...written.map(([name]) => name), ...[...copies].map(copyAddress)].sort();
  const manifest = Object.fromEntries(names.map((name) => [name, manifestEntry(name)]));
  writeFileSync(pathInClone(helpFolder, 'manifest.json'), JSON.stringify(manifest, null, 2));
  writeFileSync(stampFile, stamp);
}

/** The file with the version of the renderer. */
const lockFile = () => pathInClone('package-lock.json');

/** The script and the style sheet of the pages, minified, with a hash in their names. */
async function bundleAssets(build) {
  const { outputFiles } = await build({
    absWorkingDir: pathInClone(),
    entryPoints: [`${ownFolder}/search.mjs`, `${ownFolder}/help.css`],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    outdir: 'unused',
    write: false,
    logLevel: 'warning',
  });
  return outputFiles.map(({ path, text }) => {
    const [stem, ending] = posix.basename(path.replaceAll('\\', '/')).split('.');
    return { kind: ending, name: hashedName(stem, ending, text), text };
  });
}

/** A name that changes with the content, so that browsers may keep the file for ever. */
function hashedName(stem, ending, text) {
  return `${stem}-${createHash('sha256').update(text).digest('hex').slice(0, 8)}.${ending}`;
}

/** The HTML of every page and the search's file, by address; and the other files that pages show or link to. */
function renderPages(renderPage, assets) {
  const copies = new Set();
  const menu = helpSections();
  const pageFiles = new Set(menu.flatMap(({ files }) => files));
  const follow = (path) => {
    if (pageFiles.has(path)) return pageAddress(path);
    if (!COPIED.test(path) || !existsSync(pathInClone(path)) || statSync(pathInClone(path)).isDirectory()) return null;
    copies.add(path);
    return copyAddress(path);
  };
  const pages = [...pageFiles].map((file) => {
    const address = pageAddress(file);
    const text = readFileSync(pathInClone(file), 'utf8').replaceAll('\r\n', '\n');
    return { file, address, ...renderPage({ file, address, text, follow }) };
  });
  const titles = new Map(pages.map(({ file, title }) => [file, title]));
  const sections = menu.map(({ title, files }) => ({
    title,
    pages: files.map((file) => ({ address: pageAddress(file), title: MENU_TITLES[file] ?? titles.get(file) })),
  }));
  const searchText = JSON.stringify(pages.map(({ address, title, parts }) => ({ address, title, parts })));
  const search = hashedName('search', 'json', searchText);
  const html = pages.map((page) => [page.address, pageHtml({ page, sections, assets, search })]);
  return { files: [...html, [search, searchText]], copies };
}

/** The address of a copied file, relative to the first page: the same place as in docs/. */
function copyAddress(source) {
  return source.replace(/^docs\//, '');
}

function write(name, content) {
  const path = pathInClone(helpFolder, name);
  mkdirSync(posix.dirname(path), { recursive: true });
  writeFileSync(path, content);
  if (isCompressed(name)) writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
}

function isCompressed(name) {
  return !name.endsWith('.png') && statSync(pathInClone(helpFolder, name)).size >= MIN_COMPRESSED_BYTES;
}

/** What the gateway must know about a file; `hasHash` says whether its name changes with its content. */
function manifestEntry(name) {
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? TEXT_TYPE;
  return { type, isCompressed: isCompressed(name), hasHash: /-[0-9a-f]{8}\.(css|js|json)$/.test(name) };
}
