/**
 * Streets in a real browser: the maps show tiles (`--map-tiles`) with their attribution, and lines (`--map-streets`)
 * from a zoom on. No request leaves for another origin than that of the page.
 */
import t from 'tap';
import { readMapTiles } from '../../../gateway/map/map-tiles.js';
import { streetLines } from '../../../gateway/map/street-lines.js';
import { type BrowserPage, NO_BROWSER, openBrowser, seriousFindings } from '../../clients/browser.js';
import { addUser, PASSWORD } from '../../helpers/console/dashboard.js';
import { goTo, TIMEOUT, waitForText } from '../../helpers/console/page-actions.js';
import { MERCHANT, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { startTileServer } from '../../helpers/map/test-tile-server.js';

/** The tiles' attribution: it would end an attribute and run as a script if the HTML had it unescaped. */
const ATTRIBUTION = '© "Streets" <img src=x onerror="window.isInjected=1">';

/** Whether the page may load an image of this address. */
async function mayShow(page: BrowserPage, address: string): Promise<boolean> {
  return await page.evaluate<boolean>(`new Promise((resolve) => {
    const image = new Image();
    image.onload = () => resolve(true);
    image.onerror = () => resolve(false);
    image.src = ${JSON.stringify(address)};
  })`);
}

t.test('maps show tiles, which the page has from the gateway alone', { skip: NO_BROWSER }, async (t) => {
  const tiles = await startTileServer(t);
  const mapTiles = readMapTiles(`${tiles.origin}/{z}/{x}/{y}.png?key=a&b`, ATTRIBUTION) ?? null;
  const gateway = await testGateway(t, {}, { mapTiles });
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  await gateway.accounts.addDevice({ mac: testMac(), merchant: MERCHANT });
  const browser = await openBrowser(t);
  const page = await browser.newPage();
  await page.setViewport({ width: 1600, height: 1000 });
  const requested: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  const origin = `http://127.0.0.1:${gateway.httpPort}`;
  await page.goto(`${origin}/m/${MERCHANT}`);
  await page.waitForSelector('input[name=username]', TIMEOUT);
  t.same(tiles.paths, [], 'nothing is loaded before a map is shown');
  await page.type('input[name=username]', 'ada');
  await page.type('input[name=password]', PASSWORD);
  await page.click('button[type=submit]');
  await waitForText(page, 'Log out');
  await goTo(page, '#/map');
  await page.waitForSelector('.map img.leaflet-tile-loaded', TIMEOUT);
  await page.waitForFunction(`!document.querySelector('.map img.leaflet-tile:not(.leaflet-tile-loaded)')`, TIMEOUT);
  await waitForText(page, ATTRIBUTION);
  t.equal(await page.evaluate<unknown>('window.isInjected ?? null'), null, 'the attribution is text');
  t.ok(await page.$('.map .leaflet-coast-pane canvas'), 'the coasts are below the tiles');
  t.same(await seriousFindings(page), [], 'axe');
  const shown = await page.evaluate<number>(`document.querySelectorAll('.map img.leaflet-tile-loaded').length`);
  t.ok(shown > 3, `more tiles than are loaded at a time: ${shown}`);
  t.ok(tiles.paths.length > 0, 'the gateway has fetched tiles');
  for (const path of tiles.paths) t.match(path, /^\/\d+\/\d+\/\d+\.png\?key=a&b$/);
  for (const { referer, cookie } of tiles.headers)
    t.match({ referer, cookie }, { referer: undefined, cookie: undefined });
  const elsewhere = requested.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'));
  t.same(elsewhere, [], `none of ${requested.length} requests goes to another origin`);
  t.ok(requested.some((url) => url.startsWith(`${origin}/console/tiles/`)));
  t.equal(await mayShow(page, `${origin}/console/tiles/1/0/0`), true);
  t.equal(await mayShow(page, `${tiles.origin}/1/0/0.png`), false, 'the policy lets the page ask no tile server');
});

t.test('maps draw lines of streets below the locks, once the reader looks closely', { skip: NO_BROWSER }, async (t) => {
  // A street each two kilometres, so that some are in view wherever the map is.
  const streets = Array.from({ length: 1000 }, (_, index) => [
    [-170, index / 50],
    [170, index / 50],
  ]);
  const mapStreets = streetLines(JSON.stringify({ type: 'MultiLineString', coordinates: streets }));
  const gateway = await testGateway(t, {}, { mapStreets });
  await addUser(gateway, MERCHANT, 'ada', 'owner');
  await gateway.accounts.addDevice({ mac: testMac(), merchant: MERCHANT });
  const page = await (await openBrowser(t)).newPage();
  const origin = `http://127.0.0.1:${gateway.httpPort}`;
  await page.goto(`${origin}/m/${MERCHANT}`);
  await page.waitForSelector('input[name=username]', TIMEOUT);
  await page.type('input[name=username]', 'ada');
  await page.type('input[name=password]', PASSWORD);
  await page.click('button[type=submit]');
  await waitForText(page, 'Log out');
  await goTo(page, '#/map');
  await page.waitForSelector('.map .leaflet-streets-pane', TIMEOUT);
  await page.waitForSelector('.map .leaflet-coast-pane canvas', TIMEOUT);
  t.equal(await page.$('.map .leaflet-streets-pane canvas'), null, 'not for the whole world');
  await page.waitForFunction(
    `(() => {
      const canvas = document.querySelector('.map .leaflet-streets-pane canvas');
      // Leaflet ignores clicks during its animation.
      if (canvas === null) document.querySelector('.leaflet-control-zoom-in').click();
      if (canvas === null || canvas.width === 0) return false;
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value, index) => index % 4 === 3 && value > 0);
    })()`,
    TIMEOUT,
  );
  const zIndex = (pane: string): Promise<number> =>
    page.evaluate<number>(`Number(getComputedStyle(document.querySelector('.map .leaflet-${pane}-pane')).zIndex)`);
  const [coast, lines, locks] = [await zIndex('coast'), await zIndex('streets'), await zIndex('overlay')];
  t.ok(coast < lines && lines < locks, `coasts ${coast}, streets ${lines}, locks ${locks}`);
});
