/**
 * Street tiles of the operator's own server (`--map-tiles`), in a real browser: the maps show them with their
 * attribution, the page's policy allows the images of exactly that origin and nothing else of it, and no other origin.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { readMapTiles } from '../../../gateway/console/map-tiles.js';
import { type BrowserPage, NO_BROWSER, openBrowser, seriousFindings } from '../../clients/browser.js';
import { addUser, PASSWORD } from '../../helpers/console/dashboard.js';
import { goTo, TIMEOUT, waitForText } from '../../helpers/console/page-actions.js';
import { MERCHANT, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';

/** A PNG of one pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
/** The tiles' attribution: it would end an attribute and run as a script if the HTML had it unescaped. */
const ATTRIBUTION = '© "Streets" <img src=x onerror="window.isInjected=1">';

/** A server that answers every request with an image, and the requests that it got. */
async function imageServer(t: Test) {
  const requests: { readonly url: string; readonly referer: string | undefined }[] = [];
  const server = createServer((request, response) => {
    requests.push({ url: request.url ?? '', referer: request.headers.referer });
    response.writeHead(200, { 'content-type': 'image/png', 'access-control-allow-origin': '*' }).end(PIXEL);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

/** Whether the page may load an image of this address. */
async function mayShow(page: BrowserPage, address: string): Promise<boolean> {
  return await page.evaluate<boolean>(`new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve(true);
    image.onerror = () => resolve(false);
    image.src = ${JSON.stringify(address)};
  })`);
}

/** Whether a script of the page may read the answer of this address. */
async function mayFetch(page: BrowserPage, address: string): Promise<boolean> {
  return await page.evaluate<boolean>(`fetch(${JSON.stringify(address)}).then(() => true, () => false)`);
}

t.test('maps show the tiles of the operator’s server', { skip: NO_BROWSER }, async (t) => {
  const [tiles, other] = [await imageServer(t), await imageServer(t)];
  const mapTiles = readMapTiles(`${tiles.origin}/{z}/{x}/{y}.png?key=a&b`, ATTRIBUTION) ?? null;
  const gateway = await testGateway(t, {}, { mapTiles });
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  await gateway.accounts.addDevice({ mac: testMac(), merchant: MERCHANT });
  const browser = await openBrowser(t);
  const page = await browser.newPage();
  const origin = `http://127.0.0.1:${gateway.httpPort}`;
  await page.goto(`${origin}/m/${MERCHANT}`);
  await page.waitForSelector('input[name=username]', TIMEOUT);
  t.same(tiles.requests, [], 'nothing is loaded before a map is shown');
  await page.type('input[name=username]', 'ada');
  await page.type('input[name=password]', PASSWORD);
  await page.click('button[type=submit]');
  await waitForText(page, 'Log out');
  await goTo(page, '#/map');
  await page.waitForSelector('.map img.leaflet-tile-loaded', TIMEOUT);
  await waitForText(page, ATTRIBUTION);
  t.equal(await page.evaluate<unknown>('window.isInjected ?? null'), null, 'the attribution is text');
  t.ok(await page.$('.map .leaflet-coast-pane canvas'), 'the coasts are below the tiles');
  t.same(await seriousFindings(page), [], 'axe');
  t.ok(tiles.requests.length > 0, 'the map has loaded tiles');
  for (const { url, referer } of tiles.requests) {
    t.match(url, /^\/\d+\/\d+\/\d+\.png\?key=a&b$/);
    t.equal(referer, `${origin}/`, 'the server learns the origin, not the view');
  }
  t.equal(await mayShow(page, `${tiles.origin}/1/0/0.png`), true);
  t.equal(await mayFetch(page, `${tiles.origin}/1/0/0.png`), false, 'images only');
  t.equal(await mayShow(page, `${other.origin}/1/0/0.png`), false, 'no other origin');
  t.same(other.requests, []);
});
