/** The setting `--map-tiles`, the places of tiles, and how images are recognised. */
import t from 'tap';
import { imageTypeOf } from '../../../gateway/map/image-type.js';
import { readMapTiles } from '../../../gateway/map/map-tiles.js';
import { readTilePlace, tileAddress } from '../../../gateway/map/tile-place.js';
import { resolveSettings, settingsInForce } from '../../../gateway/resolved-settings.js';
import { PIXEL } from '../../helpers/map/test-tile-server.js';

t.test('a tile server is an http or https URL with {z}, {x} and {y}', async (t) => {
  const url = 'https://tiles.example.com/{z}/{x}/{y}{r}.png?key=1';
  t.same(readMapTiles(url, ' © Streets '), { url, attribution: '© Streets' });
  t.match(readMapTiles('HTTP://Tiles:8080/{z}/{x}/{y}', ''), {
    url: 'http://tiles:8080/{z}/{x}/{y}',
    attribution: 'tiles:8080',
  });
  for (const wrong of [
    ...['', 'tiles', 'https://tiles.example.com/', 'https://tiles.example.com/{z}/{x}.png', '/{z}/{x}/{y}'],
    ...['ftp://a/{z}/{x}/{y}', 'https://me:secret@a/{z}/{x}/{y}', 'https://{s}.a/{z}/{x}/{y}'],
    ...['https://a/{s}/{z}/{x}/{y}', 'https://a/{z}/{x}/{y} b', 'https://a/#{z}/{x}/{y}'],
  ])
    t.equal(readMapTiles(wrong, ''), undefined, wrong);
});

t.test('the tile server’s URL is shown without its query, which may have a key', async (t) => {
  const settings = resolveSettings({ mapTiles: 'https://tiles.example.com/{z}/{x}/{y}.png?key=secret' }, {});
  const shown = settingsInForce(settings).find(({ key }) => key === 'map_tiles');
  t.match(shown, { value: 'https://tiles.example.com/{z}/{x}/{y}.png?…', given: /\?…$/ });
});

t.test('a tile is named by whole numbers within the map of its zoom', async (t) => {
  t.same(readTilePlace({ z: '0', x: '0', y: '0' }), { z: 0, x: 0, y: 0, isFine: false });
  t.same(readTilePlace({ z: '22', x: '4194303', y: '4194303@2x' }), { z: 22, x: 4194303, y: 4194303, isFine: true });
  for (const [z, x, y] of [
    ...[
      ['0', '1', '0'],
      ['3', '8', '0'],
      ['3', '0', '8'],
      ['23', '0', '0'],
      ['22', '4194304', '0'],
    ],
    ...[
      ['-1', '0', '0'],
      ['1', '-1', '0'],
      ['1', '0.5', '0'],
      ['1', '01', '0'],
      ['1e1', '0', '0'],
    ],
    ...[
      ['1', '', '0'],
      ['1', '0', ' 0'],
      ['1', '0', '0@3x'],
      ['1', '0', '@2x'],
      ['1', '0x1', '0'],
      ['1', '99999999999', '0'],
    ],
  ])
    t.equal(readTilePlace({ z, x, y }), undefined, `${z}/${x}/${y}`);
  t.equal(readTilePlace({ z: '1', x: '0' }), undefined);
});

t.test('a tile’s address has its numbers, and @2x for a fine screen', async (t) => {
  const url = 'https://a/{z}/{x}/{y}{r}.png?again={z}';
  t.equal(tileAddress(url, { z: 3, x: 4, y: 5, isFine: false }), 'https://a/3/4/5.png?again=3');
  t.equal(tileAddress(url, { z: 3, x: 4, y: 5, isFine: true }), 'https://a/3/4/5@2x.png?again=3');
});

t.test('images are recognised by their first bytes', async (t) => {
  const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
  t.equal(imageTypeOf(PIXEL), 'image/png');
  t.equal(imageTypeOf(bytes('\xff\xd8\xff\xe0')), 'image/jpeg');
  t.equal(imageTypeOf(bytes('GIF89a')), 'image/gif');
  t.equal(imageTypeOf(bytes('RIFF\x01\x02\x03\nWEBPVP8 ')), 'image/webp');
  t.equal(imageTypeOf(bytes('\0\0\0\x1cftypavif')), 'image/avif');
  for (const other of ['', '<svg xmlns="http://www.w3.org/2000/svg">', '<!doctype html>', '\x89PNG', 'RIFF1234WAVE'])
    t.equal(imageTypeOf(bytes(other)), undefined, other);
});
