/**
 * The console's built pages (dist/console), as the gateway holds them in memory: every file that a page's HTML names
 * exists, plain and compressed; the files are small enough; and nothing is loaded from another origin (console.md,
 * "Seams" and "Stack").
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import type { Position } from 'geojson';
import t from 'tap';
import { feature } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import { PAGE_CSP, PAGE_FILES_PATH, Pages } from '../../../gateway/console/pages.js';
import { readMapTiles } from '../../../gateway/map/map-tiles.js';
import { openStreetMap } from '../../../gateway/map/street-map.js';
import { ManualClock } from '../../../proto/clock.js';
import { testGateway } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/**
 * The policy that console.md demands, and not that of the code: everything from this gateway, nothing inline or
 * foreign, in no frame. The last three rules do not follow `default-src`.
 */
const POLICY = [
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

const folderUrl = (path: string): URL => pathToFileURL(join(path, '/'));
const pages = new Pages(folderUrl(join(root, 'dist/console')));

/** The addresses that a page's HTML names: of scripts, style sheets and, in attributes of its own, workers. */
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
    // A script without src, a style, or a handler such as onclick=.
    t.notMatch(html, /<script(?![^>]* src=)|<style|style=| on\w+=/, 'nothing inline, which the policy forbids');
  });

t.test('each compressed file unpacks to the plain one', async (t) => {
  t.ok(pages.names.length >= 6);
  for (const name of pages.names) {
    const file = pages.file(name);
    if (file === undefined) throw new Error(`no file ${name}`);
    t.ok(brotliDecompressSync(file.brotli).equals(file.plain), `${name}, brotli`);
    t.ok(gunzipSync(file.gzip).equals(file.plain), `${name}, gzip`);
    t.notMatch(file.type, /octet-stream/, `${name} has a type`);
  }
});

/** The size of the files with these endings together, compressed by gzip. */
function compressedBytes(endings: RegExp): number {
  const sizes = pages.names.filter((name) => endings.test(name)).map((name) => pages.file(name)?.gzip.length ?? 0);
  return sizes.reduce((sum, size) => sum + size, 0);
}

t.test('scripts and style sheets have under 150 KB compressed by gzip, and 300 KB with the map’s data', async (t) => {
  const total = compressedBytes(/\.(js|css)$/);
  t.ok(total < 150 * 1000, `${total} bytes`);
  const withMap = compressedBytes(/\.(js|css|json|geojson)$/);
  t.ok(withMap < 300 * 1000, `${withMap} bytes`);
});

// The build simplifies the outlines of countries. Natural Earth has them at scales of 1 : 50 and 1 : 110 million.
for (const level of ['50m', '110m'])
  t.test(
    `the map's data of ${level} has each country of Natural Earth, and those over 1 square degree keep their area`,
    async (t) => {
      const name = pages.names.find((each) => each.startsWith(`countries-${level}-`)) ?? '';
      const ours = countriesIn(pages.file(name)?.plain.toString('utf8') ?? '');
      const source = countriesIn(readFileSync(join(root, `node_modules/world-atlas/countries-${level}.json`), 'utf8'));
      t.equal(ours.length, source.length);
      const large = source.map((country, index) => [areaOf(country), index] as const).filter(([area]) => area > 1);
      t.ok(large.length > 100, `${large.length} countries`);
      for (const [area, index] of large) {
        const change = Math.abs(areaOf(ours[index]) / area - 1);
        t.ok(change < 0.05, `country ${index} of ${area} square degrees: ${change}`);
      }
    },
  );

/** The polygons of each country. */
function countriesIn(text: string): Position[][][][] {
  const topology = JSON.parse(text) as Topology<{ countries: GeometryCollection }>;
  return feature(topology, topology.objects.countries).features.map(({ geometry }) => {
    if (geometry.type === 'Polygon') return [geometry.coordinates];
    return geometry.type === 'MultiPolygon' ? geometry.coordinates : [];
  });
}

/**
 * The area of a country, square degrees, by the trapezoids between its outline and the equator. A side that crosses the
 * longitude 180° is measured the short way, as if the map went on there.
 */
function areaOf(polygons: readonly Position[][][] = []): number {
  const rings = polygons.flat().map((ring) => {
    const sides = ring.slice(1).map(([x1 = 0, y1 = 0], index) => {
      const [x0 = 0, y0 = 0] = ring[index] ?? [];
      const width = ((((x1 - x0 + 180) % 360) + 360) % 360) - 180;
      return (width * (y0 + y1)) / 2;
    });
    return sides.reduce((sum, side) => sum + side, 0);
  });
  return Math.abs(rings.reduce((sum, ring) => sum + ring, 0));
}

t.test('no file loads anything from another origin', async (t) => {
  for (const name of pages.names.filter((each) => /\.(js|css)$/.test(each))) {
    const text = pages.file(name)?.plain.toString('utf8') ?? '';
    // Such as import("https://…"), url(//…) or src="http://…".
    t.notMatch(text, /(?:import|fetch|url|src)\s*[(=:]\s*["'`]?(?:https?:)?\/\//, name);
  }
  t.match(PAGE_CSP, /^default-src 'none'/);
  t.notMatch(PAGE_CSP, /unsafe|https?:|\*/);
});

t.test('both ports send the policy with the page and with each file, also with those of workers', async (t) => {
  const mapTiles = readMapTiles('https://tiles.example.com/{z}/{x}/{y}.png', '') ?? null;
  const gateway = await testGateway(t, {}, { mapTiles });
  for (const [page, port] of [
    ['merchant', gateway.httpPort],
    ['operator', gateway.operatorPort],
  ] as const) {
    const html = pages.html(page);
    for (const path of ['/', ...addressesIn(html).filter((address) => address !== 'data:,')]) {
      const { status, headers } = await fetch(`http://127.0.0.1:${port}${path}`);
      t.equal(status, 200, path);
      t.equal(headers.get('content-security-policy'), POLICY, path);
      t.equal(headers.get('x-content-type-options'), 'nosniff', path);
      // The page names files whose names have a hash, so a page that a browser kept could name files that are gone.
      if (path === '/') t.equal(headers.get('cache-control'), 'no-cache');
      t.equal(headers.get('referrer-policy'), 'no-referrer', path);
    }
  }
});

t.test('without a build, the error says what to run', async (t) => {
  t.throws(() => new Pages(folderUrl(tempFolder(t))), { code: 'internal-pages', message: /npm run build/ });
});

t.test('the HTML names tiles of this gateway alone, and the text of their attribution is escaped', async (t) => {
  const options = { clock: new ManualClock(), userAgent: 'test', onFailure: () => undefined };
  const htmlOf = (url: string, attribution = ''): string => {
    const mapTiles = readMapTiles(url, attribution) ?? null;
    return pages.html('merchant', openStreetMap({ mapTiles, mapStreets: null }, options).note);
  };
  const html = htmlOf('https://tiles.example.com/{z}/{x}/{y}.png?key=secret', '"<b>');
  t.match(html, ' data-map-tiles="/console/tiles/{z}/{x}/{y}" data-map-attribution="&#34;&#60;b&#62;"');
  t.notMatch(html, /example|secret/, 'nothing of the address, which may have a key');
  t.match(htmlOf('https://a/{z}/{x}/{y}{r}'), 'data-map-tiles="/console/tiles/{z}/{x}/{y}{r}"', 'fine tiles');
  t.notMatch(pages.html('merchant'), /data-map/);
});
