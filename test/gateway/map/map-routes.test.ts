/** Tiles at the operators' and the merchants' port: who gets them, and what a browser may keep. */
import t, { type Test } from 'tap';
import { DEFAULT_FAIRNESS } from '../../../gateway/fairness/fairness-settings.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { readMapTiles } from '../../../gateway/map/map-tiles.js';
import { ManualClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { addUser, cookieOf, Dashboard, pageHeaders } from '../../helpers/console/dashboard.js';
import { MERCHANT, testGateway, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { PIXEL, pixel, startTileServer } from '../../helpers/map/test-tile-server.js';

/** A gateway with a tile server, and calls of both pages: that of a logged-in user and that of an operator. */
async function setUp(t: Test) {
  const server = await startTileServer(t);
  const mapTiles = readMapTiles(`${server.origin}/{z}/{x}/{y}.png`, '') ?? null;
  const gateway = await testGateway(t, {}, { mapTiles });
  await addUser(gateway, MERCHANT, 'ada', 'viewer');
  const dashboard = await Dashboard.open(gateway, MERCHANT, 'ada');
  const console = await operatorPage(gateway);
  const pages: readonly (readonly [string, (path: string) => Promise<Answer>])[] = [
    ['merchant', (path) => dashboard.call(path)],
    ['operator', (path) => console.call(path)],
  ];
  return { server, gateway, pages, dashboard };
}

/** The page of an operator who is logged in. */
async function operatorPage({ ...gateway }: Gateway): Promise<Dashboard> {
  const { body } = await callOperator(gateway, 'POST', '/console/links');
  const asMerchants = { ...gateway, httpPort: gateway.operatorPort };
  const headers = pageHeaders(gateway.operatorPort);
  return new Dashboard(asMerchants, cookieOf(await callMerchantApi(asMerchants, '/console/login', { headers, body })));
}

type Answer = Awaited<ReturnType<Dashboard['call']>>;

t.test('who is logged in gets tiles, the same ones on both ports', async (t) => {
  const { server, pages } = await setUp(t);
  server.answer = pixel({ 'cache-control': 'max-age=600', 'set-cookie': 'a=b', 'content-type': 'image/jpeg' });
  for (const [page, call] of pages) {
    const answer = await call('/console/tiles/3/4/5');
    t.match(answer, { status: 200, headers: { 'content-type': 'image/png' } }, page);
    t.match(answer.headers['cache-control'], /^private, max-age=(600|59\d)$/);
    t.match(answer.headers, {
      'content-length': String(PIXEL.length),
      'x-content-type-options': 'nosniff',
      'content-security-policy': /^default-src 'none'/,
    });
    t.equal(answer.headers['set-cookie'], undefined);
  }
  t.same(server.paths, ['/3/4/5.png'], 'the second comes from memory');
});

t.test('without a session there are none', async (t) => {
  const { server, gateway, dashboard } = await setUp(t);
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const path = '/console/tiles/3/4/5';
  const ports = [gateway.httpPort, gateway.operatorPort].map((httpPort) => ({ httpPort }));
  for (const port of ports) {
    t.match(await callMerchantApi(port, path), { status: 401 });
    t.match(await callMerchantApi(port, path, { headers: { cookie: 'lockgate_merchant=x' } }), { status: 401 });
  }
  t.match(await callMerchantApi(gateway, path, { key }), { status: 401 }, 'an API key is no session');
  const fromElsewhere = await dashboard.call(path, { headers: { 'sec-fetch-site': 'cross-site' } });
  t.match(fromElsewhere, { status: 403 }, 'a page of another site');
  await dashboard.call('/console/logout', { method: 'POST' });
  t.match(await dashboard.call(path), { status: 401 }, 'after the logout');
  t.same(server.paths, []);
});

t.test('wrong places and failures are answers', async (t) => {
  const { server, gateway, pages } = await setUp(t);
  for (const [page, call] of pages) {
    for (const path of ['23/0/0', '1/2/0', '1/0/2', '1/-1/0', '1/0/x', '1/0/0.png', '1/0/%2e%2e', '1/0/0%3fa'])
      t.match(await call(`/console/tiles/${path}`), { status: 404, body: { code: 'no-such-tile' } }, `${page} ${path}`);
    for (const path of ['1/0', '1', '1/0/0/0']) t.match(await call(`/console/tiles/${path}`), { status: 404 }, path);
  }
  t.same(server.paths, []);
  const failures = waitForEvents(gateway, 'tile-failed', 2);
  server.answer = (response) => void response.writeHead(403).end();
  for (const [page, call] of pages) {
    const failed = { status: 502, body: { code: 'tile-unavailable', detail: 'the tile server answered 403' } };
    t.match(await call('/console/tiles/1/0/0'), failed, page);
  }
  t.match(await failures, [{ why: 'the tile server answered 403' }, {}]);
  server.answer = (response) => void response.writeHead(404, { 'cache-control': 'max-age=600' }).end();
  for (const [page, call] of pages) {
    const nothing = { status: 404, body: { code: 'no-such-tile' }, headers: { 'cache-control': /^private, max-age=/ } };
    t.match(await call('/console/tiles/1/0/1'), nothing, page);
  }
});

t.test('eight tiles count as one request of the merchant', async (t) => {
  const server = await startTileServer(t);
  const mapTiles = readMapTiles(`${server.origin}/{z}/{x}/{y}.png`, '') ?? null;
  const fairness = { ...DEFAULT_FAIRNESS, requests: { perSecond: 1, burst: 2 } };
  const gateway = await testGateway(t, { httpBudgetClock: new ManualClock() }, { mapTiles, fairness });
  await addUser(gateway, MERCHANT, 'ada', 'viewer');
  const dashboard = await Dashboard.open(gateway, MERCHANT, 'ada');
  for (let asked = 0; asked < 16; asked++)
    t.match(await dashboard.call('/console/tiles/1/0/0'), { status: 200 }, `tile ${asked}`);
  t.match(await dashboard.call('/console/tiles/1/0/0'), { status: 429, body: { budget: 'requests' } });
});

t.test('without the setting there are no tiles', async (t) => {
  const gateway = await testGateway(t);
  await addUser(gateway, MERCHANT, 'ada', 'viewer');
  const dashboard = await Dashboard.open(gateway, MERCHANT, 'ada');
  t.match(await dashboard.call('/console/tiles/1/0/0'), { status: 404, body: { code: 'no-such-route' } });
});
