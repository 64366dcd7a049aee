/**
 * Tiles of a tile server through the cache: what is fetched, how often and how many at a time, and what a server can't
 * make the gateway do. Time is a manual clock's.
 */
import t, { type Test } from 'tap';
import { CachedTiles, MAX_RUNNING_FETCHES, MAX_WAITING_FETCHES } from '../../../gateway/map/cached-tiles.js';
import { TileCache } from '../../../gateway/map/tile-cache.js';
import type { TilePlace } from '../../../gateway/map/tile-place.js';
import {
  DEFAULT_TILE_AGE,
  MAX_TILE_AGE,
  MAX_TILE_BYTES,
  MIN_TILE_AGE,
  TILE_TIMEOUT,
  TileServer,
} from '../../../gateway/map/tile-server.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';
import { PIXEL, pixel, startTileServer } from '../../helpers/map/test-tile-server.js';

const place = (x: number, isFine = false): TilePlace => ({ z: 16, x, y: 3, isFine });
const NEVER = new AbortController().signal;

/** A tile server, and the tiles that the gateway has of it. */
async function setUp(t: Test) {
  const server = await startTileServer(t);
  const clock = new ManualClock();
  const failures: string[] = [];
  const url = `${server.origin}/{z}/{x}/{y}{r}.png?key=secret`;
  const source = new TileServer({ url, userAgent: 'lockgate/test', clock });
  const tiles = new CachedTiles(source, new TileCache(clock), (why) => failures.push(why));
  t.teardown(() => tiles.close());
  return { server, clock, tiles, failures };
}

t.test('a tile is fetched once, and comes from memory until it is too old', async (t) => {
  const { server, clock, tiles } = await setUp(t);
  server.answer = pixel({ 'cache-control': 'public, max-age=1000' });
  const first = await tiles.get(place(1), NEVER);
  t.match(first, { tile: { type: 'image/png', bytes: PIXEL }, maxAge: Seconds(1000) });
  clock.advance(Seconds(999));
  t.match(await tiles.get(place(1), NEVER), { tile: { bytes: PIXEL }, maxAge: Seconds(1) });
  t.same(server.paths, ['/16/1/3.png?key=secret']);
  t.match(server.headers, [
    { 'user-agent': 'lockgate/test', accept: 'image/*', referer: undefined, cookie: undefined },
  ]);
  clock.advance(Seconds(1));
  await tiles.get(place(1), NEVER);
  await tiles.get(place(1, true), NEVER);
  t.same(server.paths.slice(1), ['/16/1/3.png?key=secret', '/16/1/3@2x.png?key=secret']);
});

t.test('the age that a server gives a tile is taken within bounds', async (t) => {
  const { server, tiles } = await setUp(t);
  let x = 0;
  const ageFor = async (cacheControl: string | undefined): Promise<number> => {
    server.answer = pixel(cacheControl === undefined ? {} : { 'cache-control': cacheControl });
    return (await tiles.get(place(x++), NEVER)).maxAge;
  };
  t.equal(await ageFor(undefined), DEFAULT_TILE_AGE);
  t.equal(await ageFor('public'), DEFAULT_TILE_AGE);
  t.equal(await ageFor('max-age=0'), MIN_TILE_AGE);
  t.equal(await ageFor('no-store'), MIN_TILE_AGE);
  t.equal(await ageFor('max-age=3600, stale-while-revalidate=60'), Seconds(3600));
  t.equal(await ageFor('max-age=9999999999'), MAX_TILE_AGE);
});

t.test('requests for the same tile share one fetch', async (t) => {
  const { server, tiles } = await setUp(t);
  const answers = [tiles.get(place(1), NEVER), tiles.get(place(1), NEVER), tiles.get(place(2), NEVER)];
  for (const answer of await Promise.all(answers)) t.match(answer, { tile: { bytes: PIXEL } });
  t.equal(server.paths.length, 2);
});

t.test(
  'few tiles are fetched at a time; others wait in a bounded queue, and those nobody wants are left out',
  async (t) => {
    const { server, tiles } = await setUp(t);
    const releases: (() => void)[] = [];
    server.answer = (response, request) => releases.push(() => pixel()(response, request));
    const running = Array.from({ length: MAX_RUNNING_FETCHES }, (_, x) => tiles.get(place(x), NEVER));
    const [gone, back] = [new AbortController(), new AbortController()];
    const unwanted = tiles.get(place(100), gone.signal);
    const wanted = [tiles.get(place(101), back.signal), tiles.get(place(101), NEVER)];
    await server.asked(MAX_RUNNING_FETCHES);
    gone.abort();
    back.abort();
    await t.rejects(unwanted, { code: 'tile-unavailable' });
    const waiting = Array.from({ length: MAX_WAITING_FETCHES - 1 }, (_, x) => tiles.get(place(1000 + x), NEVER));
    await t.rejects(tiles.get(place(5000), NEVER), { code: 'busy' }, 'the queue is full');
    t.equal(server.paths.length, MAX_RUNNING_FETCHES);
    server.answer = pixel();
    for (const release of releases) release();
    await Promise.all([...running, ...wanted, ...waiting]);
    t.equal(server.paths.length, MAX_RUNNING_FETCHES + MAX_WAITING_FETCHES);
    t.ok(server.paths.includes('/16/101/3.png?key=secret'), 'a tile that one of two still wants');
    t.notOk(server.paths.includes('/16/100/3.png?key=secret'));
  },
);

t.test('only images count, by their type and their bytes', async (t) => {
  const { server, tiles, failures } = await setUp(t);
  const wrong: readonly (readonly [type: string, body: string | Buffer])[] = [
    ['text/html', PIXEL],
    ['image/png', '<!doctype html><script>alert(1)</script>'],
    ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ['image/png', ''],
  ];
  for (const [x, [type, body]] of wrong.entries()) {
    server.answer = (response) => void response.writeHead(200, { 'content-type': type }).end(body);
    await t.rejects(tiles.get(place(x), NEVER), { code: 'tile-unavailable', message: /other than an image$/ }, type);
  }
  server.answer = pixel();
  t.match(await tiles.get(place(0), NEVER), { tile: { bytes: PIXEL } }, 'a failure is not kept');
  t.equal(failures.length, wrong.length, 'each is reported');
  t.notMatch(failures.join(), /secret|127\.0\.0\.1/, 'without the address');
});

t.test('a tile that is too large is cut off', async (t) => {
  const { server, tiles } = await setUp(t);
  const large = Buffer.concat([PIXEL, Buffer.alloc(MAX_TILE_BYTES)]);
  server.answer = (response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(large);
  await t.rejects(tiles.get(place(1), NEVER), { code: 'tile-unavailable', message: /more than 1024 KiB/ });
  const fitting = large.subarray(0, MAX_TILE_BYTES);
  server.answer = (response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(fitting);
  t.equal((await tiles.get(place(2), NEVER)).tile?.bytes.length, MAX_TILE_BYTES);
});

t.test('a slow server is given up, whatever it has sent so far', async (t) => {
  const { server, clock, tiles } = await setUp(t);
  for (const [x, begin] of [
    () => undefined,
    (response: Parameters<typeof server.answer>[0]) =>
      void response.writeHead(200, { 'content-type': 'image/png' }).write(PIXEL),
  ].entries()) {
    server.answer = begin;
    const tile = tiles.get(place(x), NEVER);
    await server.asked(x + 1);
    clock.advance(TILE_TIMEOUT - 1);
    clock.advance(1);
    await t.rejects(tile, { code: 'tile-unavailable', message: /did not answer within 8 s/ });
  }
  t.equal(clock.pending, 0);
});

t.test('redirects within the server are followed, others are not', async (t) => {
  const [{ server, tiles }, other] = [await setUp(t), await startTileServer(t)];
  let target = '';
  server.answer = (response, request) => {
    if (request.url?.startsWith('/there')) pixel()(response, request);
    else response.writeHead(302, { location: target }).end();
  };
  target = '/there';
  t.match(await tiles.get(place(1), NEVER), { tile: { bytes: PIXEL } });
  for (const [x, away] of [`${other.origin}/1.png`, 'http://127.0.0.1:1/', '//[', 'file:///etc/passwd'].entries()) {
    target = away;
    await t.rejects(tiles.get(place(10 + x), NEVER), { code: 'tile-unavailable' }, away);
  }
  t.same(other.paths, []);
  target = '/again';
  await t.rejects(tiles.get(place(20), NEVER), { code: 'tile-unavailable' }, 'for ever in a circle');
});

t.test('a place without streets is remembered, a failure is not', async (t) => {
  const { server, tiles } = await setUp(t);
  for (const [x, status] of [204, 404, 410].entries()) {
    server.answer = (response) => void response.writeHead(status).end();
    t.match(await tiles.get(place(x), NEVER), { tile: null }, `${status}`);
    await tiles.get(place(x), NEVER);
  }
  t.equal(server.paths.length, 3);
  for (const status of [400, 403, 429, 500, 503]) {
    server.answer = (response) => void response.writeHead(status).end();
    const failed = { code: 'tile-unavailable', message: `the tile server answered ${status}` };
    await t.rejects(tiles.get(place(9), NEVER), failed);
  }
  t.equal(server.paths.length, 8);
  server.answer = (response) => void response.destroy();
  await t.rejects(tiles.get(place(9), NEVER), { code: 'tile-unavailable', message: /can’t be reached/ });
});

t.test('a stop ends what is running and refuses what waits', async (t) => {
  const { server, tiles, failures } = await setUp(t);
  server.answer = () => undefined;
  const asked = Array.from({ length: MAX_RUNNING_FETCHES + 3 }, (_, x) => tiles.get(place(x), NEVER));
  await server.asked(MAX_RUNNING_FETCHES);
  const ends = Promise.allSettled(asked);
  await tiles.close();
  for (const { status } of await ends) t.equal(status, 'rejected');
  await t.rejects(tiles.get(place(99), NEVER), { code: 'stopping' });
  t.same(failures, [], 'none of that is a failure of the server');
});
