/**
 * The page at `/docs`: Swagger UI, a viewer for OpenAPI documents whose files come from its package, with an HTML page
 * and a script that make the viewer show the document of this gateway. All files are held in memory.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type MemoryFile, makeMemoryFile } from './memory-file.js';

export const PAGE_PATH = '/docs';

/** Makes the page show this gateway's document, in the layout without a top bar and logo. */
const INITIALIZER = `window.onload = () => {
  const base = window.location.pathname.replace(/\\/?$/, '/');
  SwaggerUIBundle({
    url: base + 'json',
    dom_id: '#swagger-ui',
    layout: 'BaseLayout',
    docExpansion: 'list',
    deepLinking: true,
    tryItOutEnabled: true,
    persistAuthorization: false,
    validatorUrl: null,
    oauth2RedirectUrl: window.location.origin + base + 'static/oauth2-redirect.html',
  });
};
`;
const INITIALIZER_NAME = 'swagger-initializer.js';

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.js': 'application/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.png': 'image/png',
};

/** The package's files that the page loads. */
const PACKAGE_FILES = [
  'swagger-ui-bundle.js',
  'swagger-ui.css',
  'index.css',
  'favicon-16x16.png',
  'favicon-32x32.png',
  'oauth2-redirect.html',
  'oauth2-redirect.js',
] as const;

/** Every file below `/docs/static/`. */
export const PAGE_FILES: readonly string[] = [...PACKAGE_FILES, INITIALIZER_NAME];

let pageFiles: Promise<ReadonlyMap<string, MemoryFile>> | undefined;

/** Returns the files by name, read once per process. Rejects if a file can't be read. */
export function loadPageFiles(): Promise<ReadonlyMap<string, MemoryFile>> {
  pageFiles ??= readPageFiles().catch((error: unknown) => {
    pageFiles = undefined;
    throw error;
  });
  return pageFiles;
}

async function readPageFiles(): Promise<ReadonlyMap<string, MemoryFile>> {
  const folder = path.join(path.dirname(fileURLToPath(import.meta.resolve('@fastify/swagger-ui'))), 'static');
  const files = new Map<string, MemoryFile>();
  for (const name of PACKAGE_FILES) files.set(name, await toFile(name, await readFile(path.join(folder, name))));
  return files.set(INITIALIZER_NAME, await toFile(INITIALIZER_NAME, INITIALIZER));
}

async function toFile(name: string, content: string | Buffer): Promise<MemoryFile> {
  return await makeMemoryFile(CONTENT_TYPES[path.extname(name)] as string, content);
}

/** Returns the page's HTML. `base` is the path of `/docs/`, absolute or relative to the page. */
export function pageHtml(base: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<title>lockgate · the merchants’ interface</title>
<link rel="stylesheet" type="text/css" href="${base}static/swagger-ui.css">
<link rel="stylesheet" type="text/css" href="${base}static/index.css">
<link rel="icon" type="image/png" href="${base}static/favicon-32x32.png" sizes="32x32">
<link rel="icon" type="image/png" href="${base}static/favicon-16x16.png" sizes="16x16">
</head>
<body>
<div id="swagger-ui"></div>
<script src="${base}static/swagger-ui-bundle.js" charset="UTF-8"></script>
<script src="${base}static/${INITIALIZER_NAME}" charset="UTF-8"></script>
</body>
</html>
`;
}
