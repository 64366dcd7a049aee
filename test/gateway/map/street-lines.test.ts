/** The setting `--map-streets`: which files are read, which stop the start, and who gets the lines. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { readConfig } from '../../../gateway/config-reader.js';
import {
  MAX_STREET_FILE_BYTES,
  MAX_STREET_POINTS,
  readStreetFile,
  streetLines,
} from '../../../gateway/map/street-lines.js';
import { resolveSettings } from '../../../gateway/resolved-settings.js';
import { addUser, Dashboard } from '../../helpers/console/dashboard.js';
import { MERCHANT, testGateway } from '../../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const LINE = [
  [4.9, 52.37],
  [4.91, 52.38],
];
const line = (coordinates: unknown = LINE) => ({ type: 'LineString', coordinates });
const feature = (geometry: unknown) => ({ type: 'Feature', properties: { name: '<b>' }, geometry });
/** The lines of a GeoJSON object, as pages get them. */
const linesOf = (json: unknown): unknown =>
  JSON.parse(gunzipSync(streetLines(JSON.stringify(json)).gzip).toString('utf8'));

t.test('the lines of all kinds of objects count, and nothing else', async (t) => {
  const wanted = { type: 'MultiLineString', coordinates: [LINE] };
  const point = { type: 'Point', coordinates: [1, 2] };
  for (const json of [
    line(),
    feature(line()),
    { type: 'MultiLineString', coordinates: [LINE] },
    { type: 'GeometryCollection', geometries: [point, line()] },
    { type: 'FeatureCollection', name: 'x', features: [feature(point), feature(null), feature(line())] },
    line(LINE.map((position) => [...position, 12.5])),
    line(LINE.map(([longitude = 0, latitude = 0]) => [longitude + 1e-9, latitude - 1e-9])),
  ])
    t.same(linesOf(json), wanted, JSON.stringify(json));
  t.not(streetLines(JSON.stringify(line())).version, streetLines(JSON.stringify(line([LINE[0]]))).version);
});

t.test('what is not usable is refused with a reason', async (t) => {
  let deep: unknown = line();
  for (let depth = 0; depth < 20; depth++) deep = { type: 'GeometryCollection', geometries: [deep] };
  const cases: readonly (readonly [unknown, RegExp])[] = [
    ...[null, 1, 'x', [], {}].map((json) => [json, /not GeoJSON/] as const),
    [{ type: 'FeatureCollection' }, /not GeoJSON/],
    [{ type: 'FeatureCollection', features: [3] }, /not GeoJSON/],
    [line('x'), /not GeoJSON/],
    [line([[181, 0]]), /not a longitude and a latitude/],
    [line([[0, 91]]), /not a longitude and a latitude/],
    [line([['0', 0]]), /not a longitude and a latitude/],
    [line([[0]]), /not a longitude and a latitude/],
    [{ type: 'Point', coordinates: [0, 0] }, /no LineString/],
    [line([]), /no LineString/],
    [line(Array.from({ length: MAX_STREET_POINTS + 1 }, () => [0, 0])), /more than 100,000 points/],
    [deep, /nested more than 8 deep/],
  ];
  for (const [json, message] of cases)
    t.throws(() => streetLines(JSON.stringify(json)), { code: 'input-setting', message }, String(message));
  t.throws(() => streetLines('{'), { message: /not JSON/ });
  t.doesNotThrow(() => streetLines(JSON.stringify(line(Array.from({ length: MAX_STREET_POINTS }, () => [0, 0])))));
});

t.test('a wrong file stops the start with one sentence', async (t) => {
  const folder = tempFolder(t);
  const fileOf = (content: string): string => {
    const file = path.join(folder, 'streets.geojson');
    writeFileSync(file, content);
    return file;
  };
  const read = (file: string) => readConfig(resolveSettings({ mapStreets: file }, {})).mapStreets;
  t.match(read(fileOf(JSON.stringify(line()))), { version: /^[0-9a-f]{16}$/ });
  t.equal(read(''), null);
  const start = /^--map-streets is ".*": expected a GeoJSON file with the lines of streets; it /;
  for (const [file, why] of [
    [path.join(folder, 'none'), /can’t be read \(ENOENT\)$/],
    [folder, /can’t be read \(EISDIR\)$/],
    [fileOf('<gpx/>'), /is not JSON$/],
  ] as const) {
    t.throws(() => read(file), { code: 'input-setting', message: start });
    t.throws(() => read(file), { message: why });
  }
  const large = `${JSON.stringify(line())}${' '.repeat(MAX_STREET_FILE_BYTES)}`;
  t.throws(() => readStreetFile(fileOf(large)), { message: /more than 8 MiB$/ });
});

t.test('the lines are for those who are logged in', async (t) => {
  const mapStreets = streetLines(JSON.stringify(line()));
  const gateway = await testGateway(t, {}, { mapStreets });
  await addUser(gateway, MERCHANT, 'ada', 'viewer');
  const dashboard = await Dashboard.open(gateway, MERCHANT, 'ada');
  const { text } = await dashboard.call('/');
  const address = / data-map-streets="([^"]*)"/.exec(text)?.[1] ?? '';
  t.equal(address, `/console/streets?v=${mapStreets.version}`, 'the page knows the address');
  for (const httpPort of [gateway.httpPort, gateway.operatorPort])
    t.match(await callMerchantApi({ httpPort }, address), { status: 401 });
  t.match(await dashboard.call(address), {
    status: 200,
    headers: {
      'content-type': 'application/geo+json',
      'content-encoding': 'gzip',
      'cache-control': 'private, max-age=86400',
    },
  });
  const ofOperator = await fetch(`http://127.0.0.1:${gateway.operatorPort}${address}`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  t.same(await ofOperator.json(), { type: 'MultiLineString', coordinates: [LINE] });
  t.notMatch(text, /data-map-tiles/);
});
