/**
 * The pages of the console in memory: every file that a page's HTML names exists, plain and compressed; the files are
 * small enough; and nothing is loaded from another origin (console.md, "Seams" and "Stack").
 */

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t from 'tap';
import { PAGE_CSP, PAGE_FILES_PATH, Pages } from '../../../gateway/console/pages.js';
import { testGateway } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const folderUrl = (path: string): URL => pathToFileURL(join(path, '/'));
const pages = new Pages(folderUrl(join(root, 'dist/console')));

/** The addresses that a page's HTML names. */
function addressesIn(html: string): string[] {
  return [...html.matchAll(/(?:src|href|data-[\w-]+-worker)="([^"]*)"/g)].map(([, address = '']) => address);
}

for (const page of ['operator', 'merchant'] as const)
  t.test(`the ${page}’s HTML names only files that the gateway has, and has nothing inline`, async (t) => {
    const html = pages.html(page);
    const addresses = addressesIn(html).filter((address) => address !== 'data:,');
    t.ok(addresses.length >= 4, `${addresses.length} files`);
    for (const address of addresses) {
      t.ok(address.startsWith(PAGE_FILES_PATH), address);
      t.ok(pages.file(address.slice(PAGE_FILES_PATH.length)), address);
    }
    t.notMatch(html, /<script(?![^>]* src=)|<style|style=| on\w+=/, 'nothing inline, which the policy forbids');
  });

t.test('each compressed file is unpacked to the plain one', async (t) => {
  t.ok(pages.names.length >= 6);
  for (const name of pages.names) {
    const file = pages.file(name);
    if (file === undefined) throw new Error(`no file ${name}`);
    t.ok(brotliDecompressSync(file.brotli).equals(file.plain), `${name}, brotli`);
    t.ok(gunzipSync(file.gzip).equals(file.plain), `${name}, gzip`);
    t.notMatch(file.type, /octet-stream/, `${name} has a type`);
  }
});

t.test('scripts and style sheets have under 150 KB compressed by gzip', async (t) => {
  const sizes = pages.names
    .filter((name) => /\.(js|css)$/.test(name))
    .map((name) => pages.file(name)?.gzip.length ?? 0);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  t.ok(total < 150 * 1000, `${total} bytes`);
});

t.test('no file loads anything from another origin', async (t) => {
  for (const name of pages.names.filter((each) => /\.(js|css)$/.test(each))) {
    const text = pages.file(name)?.plain.toString('utf8') ?? '';
    t.notMatch(text, /(?:import|fetch|url|src)\s*[(=:]\s*["'`]?(?:https?:)?\/\//, name);
  }
  t.match(PAGE_CSP, /^default-src 'none'/);
  t.notMatch(PAGE_CSP, /unsafe|https?:|\*/);
});

t.test('both ports send the policy with the page and with each file, also with those of workers', async (t) => {
  const gateway = await testGateway(t);
  for (const [page, port] of [
    ['merchant', gateway.httpPort],
    ['operator', gateway.operatorPort],
  ] as const) {
    const html = pages.html(page);
    for (const path of ['/', ...addressesIn(html).filter((address) => address !== 'data:,')]) {
      const { status, headers } = await fetch(`http://127.0.0.1:${port}${path}`);
      t.equal(status, 200, path);
      const policy = headers.get('content-security-policy') ?? '';
      const sources = policy.split('; ').flatMap((rule) => rule.split(' ').slice(1));
      t.match(policy, /^default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self';/, path);
      // Nothing inline, nothing foreign: each source is this origin, nothing, or an image in the style sheet.
      t.same(
        sources.filter((source) => !["'none'", "'self'", 'data:'].includes(source)),
        [],
        path,
      );
      t.notMatch(policy, /(?:default|script|worker|style|connect)-src[^;]*data:/, path);
      t.match(policy, /frame-ancestors 'none'/, path);
      t.equal(headers.get('x-content-type-options'), 'nosniff', path);
    }
  }
});

t.test('without a build, the error says what to run', async (t) => {
  t.throws(() => new Pages(folderUrl(tempFolder(t))), { code: 'internal-pages', message: /npm run build/ });
});
