/** Tiles in memory: their age, and their room. */
import t from 'tap';
import type { AgingTile } from '../../../gateway/map/tile.js';
import { TileCache } from '../../../gateway/map/tile-cache.js';
import { ManualClock, Minutes } from '../../../proto/clock.js';

const tileOf = (bytes: number, maxAge = Minutes(5)): AgingTile => ({
  tile: { type: 'image/png', bytes: Buffer.alloc(bytes) },
  maxAge,
});

t.test('a tile is found with the age that it has left, until it is too old', async (t) => {
  const clock = new ManualClock(Minutes(1000));
  const cache = new TileCache(clock);
  cache.keep('1/0/0', tileOf(10));
  cache.keep('1/0/1', { tile: null, maxAge: Minutes(5) });
  clock.advance(Minutes(4));
  t.match(cache.find('1/0/0'), { tile: { bytes: Buffer.alloc(10) }, maxAge: Minutes(1) });
  t.same(cache.find('1/0/1'), { tile: null, maxAge: Minutes(1) }, 'an empty place too');
  clock.advance(Minutes(1));
  t.equal(cache.find('1/0/0'), undefined);
  t.equal(cache.find('1/1/1'), undefined, 'one that never came');
});

t.test('a clock that is set back makes no tile older than it may become', async (t) => {
  let nowMs = Minutes(1000);
  const cache = new TileCache({ now: () => nowMs, after: () => ({ cancel: () => undefined }) });
  cache.keep('1/0/0', tileOf(10));
  nowMs = 0;
  t.equal(cache.find('1/0/0'), undefined);
});

t.test('the tiles that nobody has asked for longest make room', async (t) => {
  const cache = new TileCache(new ManualClock(), 5000);
  cache.keep('a', tileOf(1000));
  cache.keep('b', tileOf(1000));
  cache.keep('c', tileOf(1000));
  t.ok(cache.find('a'));
  cache.keep('d', tileOf(1000));
  t.same(
    ['a', 'b', 'c', 'd'].filter((name) => cache.find(name) !== undefined),
    ['a', 'c', 'd'],
  );
  t.ok(cache.bytes <= 5000, `${cache.bytes} bytes`);
  cache.keep('d', tileOf(10));
  cache.keep('e', tileOf(6000));
  t.equal(cache.find('e'), undefined, 'one that is larger than the room is not kept');
  t.ok(cache.find('a'), 'and drives out no other');
  for (let empty = 0; empty < 100; empty++) cache.keep(`empty ${empty}`, { tile: null, maxAge: Minutes(5) });
  t.ok(cache.bytes <= 5000, `empty places take room too: ${cache.bytes} bytes`);
});
