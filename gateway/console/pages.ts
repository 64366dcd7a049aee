/**
 * The web pages of the console, in memory: the files that the build made (cli/prepare/pages.mjs), each plain and
 * compressed, and the HTML of each page. All are read at the start, so that no request opens a file.
 */
import { existsSync, readFileSync } from 'node:fs';
import { LockgateError } from '../../proto/errors.js';
import { type MapNote, NO_STREETS } from '../map/map-note.js';

/** The pages: one for each port. */
export type PageName = 'operator' | 'merchant';

type WorkerName = 'live-worker' | 'trace-worker';

/** A file of the pages. Its name has a hash of its content, so a browser may keep it for ever. */
export interface PageFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly brotli: Buffer;
  readonly gzip: Buffer;
}

/** The path below which the files are served. */
export const PAGE_FILES_PATH = '/console/';

const MANIFEST = 'manifest.json';

/** An entry of manifest.json: a script that a page or a worker starts with, or the style sheet (`console`). */
interface ManifestEntry {
  readonly file: string;
  /** The scripts that the entry's script imports. */
  readonly imports: readonly string[];
}

interface Manifest {
  readonly entries: Readonly<Record<PageName | WorkerName | 'console', ManifestEntry>>;
  readonly files: readonly string[];
}

/** The content type of a file by the ending of its name. */
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  json: 'application/json',
  geojson: 'application/geo+json',
  txt: 'text/plain; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
};

/**
 * The Content-Security-Policy of the pages and of their files: everything from this gateway, nothing inline, nothing
 * foreign, in no frame. Leaflet places what it draws with the style attribute through the DOM, which the policy allows.
 */
export const PAGE_CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

let loadedPages: Pages | undefined;

/** The pages of this build, read once per process. @throws LockgateError `internal-pages` if the build lacks them */
export function loadPages(): Pages {
  // The compiled module is in dist/gateway/console/, or part of the program's bundle in dist/program/.
  const folders = ['../console/', '../../console/'].map((path) => new URL(path, import.meta.url));
  // If neither folder has the pages, the constructor says so.
  loadedPages ??= new Pages(
    folders.find((folder) => existsSync(new URL(MANIFEST, folder))) ?? new URL(folders[0] ?? ''),
  );
  return loadedPages;
}

/** All pages and their files. */
export class Pages {
  readonly #files = new Map<string, PageFile>();
  readonly #manifest: Manifest;

  /**
   * Reads the files.
   *
   * @param folder the URL of `dist/console/`, which ends in a slash
   * @throws LockgateError `internal-pages` if the build lacks them
   */
  constructor(folder: URL) {
    const manifest = readManifest(folder);
    for (const name of manifest.files) this.#files.set(name, readFile(folder, name));
    this.#manifest = manifest;
  }

  /** The HTML of a page, the same for everybody: it has no data. */
  html(page: PageName, note: MapNote = NO_STREETS): string {
    return pageHtml(this.#manifest, page, note);
  }

  /** A file by its name; undefined if there is none. */
  file(name: string): PageFile | undefined {
    return this.#files.get(name);
  }

  /** The names of all files. */
  get names(): readonly string[] {
    return [...this.#files.keys()];
  }
}

function readManifest(folder: URL): Manifest {
  try {
    return JSON.parse(readFileSync(new URL(MANIFEST, folder), 'utf8')) as Manifest;
  } catch {
    throw new LockgateError('internal-pages', 'the pages of the console are missing from the build: run npm run build');
  }
}

function readFile(folder: URL, name: string): PageFile {
  const read = (ending: string): Buffer => readFileSync(new URL(`${name}${ending}`, folder));
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
  return { type, plain: read(''), brotli: read('.br'), gzip: read('.gz') };
}

/** The page's HTML. Names of files are letters, digits, dots and hyphens, so they need no escaping. */
function pageHtml({ entries }: Manifest, page: PageName, note: MapNote): string {
  const { file, imports } = entries[page];
  const address = (name: string): string => `${PAGE_FILES_PATH}${name}`;
  const worker = (name: WorkerName): string => `data-${name}="${address(entries[name].file)}"`;
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>lockgate</title>`,
    '<link rel="icon" href="data:,">',
    `<link rel="stylesheet" href="${address(entries.console.file)}">`,
    ...imports.map((name) => `<link rel="modulepreload" href="${address(name)}">`),
    `<script type="module" src="${address(file)}"></script>`,
    '</head>',
    '<body>',
    `<div id="app" ${worker('live-worker')} ${worker('trace-worker')}${mapText(note)}></div>`,
    '<noscript>This page needs JavaScript. The command line shows the same.</noscript>',
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

/** The attributes that say what streets the map has. */
function mapText({ tiles, attribution, streets }: MapNote): string {
  const attributes = { 'data-map-tiles': tiles, 'data-map-attribution': attribution, 'data-map-streets': streets };
  const given = Object.entries(attributes).filter(([, value]) => value !== '');
  return given.map(([name, value]) => ` ${name}="${escaped(value)}"`).join('');
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
