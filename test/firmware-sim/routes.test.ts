// Routes from GPX and GeoJSON files: which files are read, which are refused and with which errors, and that a ride
// follows the points. The test computes distances on a sphere, independently of the code under test.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { directionOf } from '../../firmware-sim/world/routes/angle.js';
import { positionOf } from '../../firmware-sim/world/routes/city.js';
import { MAX_ROUTE_FILE_BYTES, parseRouteFile, readRouteFile } from '../../firmware-sim/world/routes/route-file.js';
import { WaypointPath } from '../../firmware-sim/world/routes/waypoint-route.js';
import { MAX_WAYPOINTS, WaypointList } from '../../firmware-sim/world/routes/waypoints.js';
import { LockgateError } from '../../proto/errors.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { testGateway } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { type LatLon, metersApart } from '../helpers/sim/sphere.js';

const gpx = (...lines: string[]): string =>
  ['<?xml version="1.0"?>', '<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1">', ...lines, '</gpx>'].join(
    '\n',
  );
/** A track; its first point is in line 4. */
const track = (...points: string[]): string => gpx('<trk><trkseg>', ...points, '</trkseg></trk>');
const trackPoint = (lat: number, lon: number, time?: string): string =>
  `<trkpt lat="${lat}" lon="${lon}">${time === undefined ? '' : `<time>${time}</time>`}</trkpt>`;

// The files are called "ride" in errors.
const parse = (text: string) => parseRouteFile(text, 'ride');
const places = (text: string) =>
  parse(text).points.map(({ latitudeDegrees, longitudeDegrees }) => [latitudeDegrees, longitudeDegrees]);

t.test('the direction of a line equals that of Math.atan2', async (t) => {
  let maxError = 0;
  for (let degrees = 0; degrees < 360; degrees += 0.13) {
    const radians = (degrees * Math.PI) / 180;
    // A direction is measured from north to east, so the eastward part is the sine. The length 7 must not matter.
    const direction = directionOf(7 * Math.sin(radians), 7 * Math.cos(radians));
    // The difference as an angle from −180° to 180°, since 359.9° and 0° are close.
    maxError = Math.max(maxError, Math.abs(((direction - degrees + 540) % 360) - 180));
  }
  t.ok(maxError < 1e-12, `at most ${maxError} degrees off`);
  t.same([directionOf(0, 1), directionOf(1, 0), directionOf(0, -1), directionOf(-1, 0)], [0, 90, 180, 270]);
  t.equal(directionOf(0, 0), 0);
});

t.test('GPX: tracks or else routes are read, with or without times; everything else is ignored', async (t) => {
  t.same(places(track(trackPoint(52.1, 4.1), trackPoint(52.2, 4.2))), [
    [52.1, 4.1],
    [52.2, 4.2],
  ]);
  const both = gpx(
    '<wpt lat="1" lon="1"><time>2020-01-01T00:00:00Z</time></wpt>',
    '<rte><rtept lat="3" lon="3"/><rtept lat="4" lon="4"/></rte>',
    '<trk><trkseg><trkpt lat="5" lon="5"/></trkseg>',
    '<trkseg><trkpt lat="5.5" lon="0.55e1"><ele>3</ele></trkpt></trkseg></trk>',
  );
  t.same(places(both), [
    [5, 5],
    [5.5, 5.5],
  ]);
  t.same(places(gpx('<rte><rtept lat="3" lon="3"/><rtept lat="4" lon="4"/></rte>')), [
    [3, 3],
    [4, 4],
  ]);
  const prefixed =
    '<g:gpx xmlns:g="http://www.topografix.com/GPX/1/1"><g:trk><g:trkseg><g:trkpt lat="1" lon="2"><trkpt lat="9" ' +
    'lon="9"/></g:trkpt><g:trkpt lat="2" lon="2"/></g:trkseg></g:trk></g:gpx>';
  t.equal(places(prefixed).length, 2, 'an element with another prefix is ignored');
  const timed = parse(
    track(trackPoint(1, 1, '2026-05-01T10:00:00Z'), trackPoint(1, 2, ' 2026-05-01T12:00:30.5+02:00 ')),
  );
  t.same(
    timed.points.map(({ atMs }) => atMs),
    [Date.UTC(2026, 4, 1, 10), Date.UTC(2026, 4, 1, 10, 0, 30, 500)],
  );
  t.ok(timed.isTimed);
  const extended = '<trkpt lat="1" lon="1"><extensions><x:time xmlns:x="x">never</x:time></extensions></trkpt>';
  t.notOk(parse(track(extended, trackPoint(2, 2))).isTimed, 'the time of an extension is none');
  t.equal(places(`\ufeff${track(trackPoint(1, 1), trackPoint(2, 2))}`).length, 2, 'a byte order mark is accepted');
});

t.test('an error about GPX names the file, the line and what was expected', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /^ride:1: the file is empty: expected a GPX file, or GeoJSON/],
    ['  \n ', /^ride:1: the file is empty/],
    ['lat,lon\n1,2', /^ride:1: the file starts with "l": expected a GPX file/],
    ['<kml>\n</kml>', /^ride:1: the file is <kml>: expected <gpx>/],
    [track('<trkpt lat="1" lon="1">', '</trkseg>'), /^ride:5: this is not XML \(.*\): expected a GPX file/],
    [track(trackPoint(1, 1), trackPoint(2, 2)).replace('</gpx>', ''), /^ride:7: this is not XML \(unclosed tag: gpx\)/],
    [track(trackPoint(1, 1), trackPoint(95, 2)), /^ride:5: lat is "95": expected degrees from -90 to 90$/],
    [track(trackPoint(1, 1), trackPoint(88, 2)), /^ride:5: the latitude is 88: expected degrees from -85 to 85$/],
    [track(trackPoint(1, 1), trackPoint(1, -181)), /^ride:5: lon is "-181": expected degrees from -180 to 180$/],
    [track(trackPoint(1, 1), '<trkpt lat="1"/>'), /^ride:5: <trkpt> has no lon: expected degrees/],
    [track(trackPoint(1, 1), '', '<trkpt', ' lat="north"', ' lon="1"/>'), /^ride:6: lat is "north": expected degrees/],
    [track('<trkpt lat="0x10" lon="1"/>'), /lat is "0x10"/],
    [track(), /^ride:5: the route has no points: expected a track \(trk\) or route \(rte\) with at least two points/],
    [track(trackPoint(1, 1)), /^ride:6: the route has one point: expected .* two points/],
    [
      track(trackPoint(1, 1), trackPoint(1, 1)),
      /^ride:7: all points of the route are the same: expected a route with some length/,
    ],
    [
      track(trackPoint(1, 1, '2026-05-01T10:00:00Z'), trackPoint(1, 2, '2026-05-01T09:59:59Z')),
      /^ride:5: the time goes back: expected none before 2026-05-01T10:00:00.000Z/,
    ],
    [
      track(trackPoint(1, 1, '2026-05-01T10:00:00Z'), trackPoint(1, 2)),
      /^ride:5: this point has no time, .*: expected a time in every/,
    ],
    [
      track(trackPoint(1, 1), trackPoint(1, 2, '2026-05-01T10:00:00Z')),
      /^ride:5: this point has a time, and the points before have none/,
    ],
    [track(trackPoint(1, 1, 'at noon')), /^ride:4: the time is "at noon": expected a date such as/],
    [
      track(trackPoint(1, 1, '2026-05-01T10:00:00Z'), trackPoint(1, 1.1, '2026-05-01T10:00:00Z')),
      /all times are the same/,
    ],
    [
      track(trackPoint(1, 1, '2026-05-01T10:00:00Z'), trackPoint(1, 1.1, '2026-05-03T10:00:00Z')),
      /^ride:5: .*too long: .* 24 h/,
    ],
    [track(trackPoint(1, 1), trackPoint(1, 20)), /^ride:5: the route is too long: expected at most 500 km/],
    ['<!DOCTYPE gpx [<!ENTITY a "b">]>\n<gpx/>', /^ride:1: the file has a document type: expected GPX, which has none/],
    [track('<trkpt lat="&a;" lon="1"/>'), /^ride:4: this is not XML \(.*entity/],
    [gpx('<a>'.repeat(100)), /^ride:3: elements are nested too deeply: expected at most 64/],
  ];
  for (const [text, message] of cases) t.throws(() => parse(text), { code: 'input-route', message }, String(message));
});

t.test('GeoJSON: lines, features and collections are read', async (t) => {
  const line = {
    type: 'LineString',
    coordinates: [
      [4.1, 52.1],
      [4.2, 52.2, 7],
    ],
  };
  const expected = [
    [52.1, 4.1],
    [52.2, 4.2],
  ];
  const feature = { type: 'Feature', properties: {}, geometry: line };
  t.same(places(JSON.stringify(line)), expected);
  t.same(places(JSON.stringify(feature)), expected);
  const point = { type: 'Feature', properties: null, geometry: { type: 'Point', coordinates: [1, 1] } };
  const nowhere = { type: 'Feature', properties: null, geometry: null };
  t.same(places(JSON.stringify({ type: 'FeatureCollection', features: [point, feature, nowhere] })), expected);
  const lines = { type: 'MultiLineString', coordinates: [line.coordinates, [[4.3, 52.3]]] };
  t.same(places(JSON.stringify(lines)), [...expected, [52.3, 4.3]]);
});

t.test('an error about GeoJSON names the line or the JSON pointer, and what was expected', async (t) => {
  const line = (...coordinates: unknown[]): string => JSON.stringify({ type: 'LineString', coordinates });
  const cases: readonly (readonly [string, RegExp])[] = [
    ['{\n "type": "LineString",\n "coordinates": [[1, 2],\n]\n}', /^ride:4: this is not JSON: expected a value$/],
    ['{\n "type": "LineString"\n "coordinates"', /^ride:3: this is not JSON: expected a comma or the closing bracket/],
    ['{\n\n', /^ride:3: this is not JSON: expected a name in double quotes or }/],
    ['{"a": "b\n"}', /^ride:1: this is not JSON: expected a string that ends/],
    ['{"a" 1}', /expected a colon/],
    ['{"a": 01}', /expected a value/],
    ['{"a": [1}', /expected a comma or the closing bracket/],
    ['{}\n{}', /^ride:2: .*expected nothing after the end/],
    ['{"a": "\\x"}', /expected a string that ends/],
    ['{}', /^ride: \/type: the type is missing: expected a LineString or MultiLineString/],
    ['{"type":"Line"}', /^ride: \/type: the type is "Line": expected a LineString/],
    ['{"type":"Point","coordinates":[1,2]}', /^ride: the route has no points: expected a LineString/],
    ['{"type":"LineString"}', /^ride: \/coordinates: this is not a list: expected a list/],
    [line([1, 2]), /^ride: the route has one point/],
    [line([1, 2], [1]), /^ride: \/coordinates\/1: this is not a point: expected \[longitude, latitude\]/],
    [line([1, 2], ['1', 2]), /^ride: \/coordinates\/1: this is not a point/],
    [line([1, 2], [4, 95]), /^ride: \/coordinates\/1: the latitude is 95: expected/],
    [line([1, 2], [400, 5]), /^ride: \/coordinates\/1: the longitude is 400: expected/],
    [
      '{"type":"FeatureCollection","features":[{"type":"Feature","geometry":7}]}',
      /^ride: \/features\/0\/geometry: this/,
    ],
    ['{"type":"FeatureCollection","features":7}', /^ride: \/features: this is not a list/],
  ];
  for (const [text, message] of cases) t.throws(() => parse(text), { code: 'input-route', message }, String(message));
});

t.test('errors name the file; its size and number of points are limited', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'lockgate-route-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'mine.gpx');
  writeFileSync(file, track(trackPoint(1, 1), trackPoint(1, 1.1)));
  t.equal((await readRouteFile(file)).points.length, 2);
  writeFileSync(file, track(trackPoint(1, 1), trackPoint(1, 400)));
  await t.rejects(readRouteFile(file), { code: 'input-route', message: new RegExp(`^${file}:5: lon is "400"`) });
  writeFileSync(file, Buffer.alloc(MAX_ROUTE_FILE_BYTES + 1, '<'));
  await t.rejects(readRouteFile(file), {
    code: 'input-file',
    message: /mine.gpx is too large: expected at most 33554432 bytes/,
  });
  await t.rejects(readRouteFile(join(folder, 'none')), { code: 'input-file', message: /can't be read/ });
  const list = new WaypointList('long');
  const add = (index: number) => list.add({ latitudeDegrees: 1, longitudeDegrees: index * 1e-6, atMs: null }, ':9');
  for (let index = 0; index < MAX_WAYPOINTS; index++) add(index);
  t.throws(() => add(MAX_WAYPOINTS), LockgateError);
});

/** Some corners near a city, about 500 m apart. */
const CORNERS = [
  [48.2, 16.3],
  [48.2045, 16.3],
  [48.2045, 16.307],
  [48.2, 16.3075],
] as const;

t.test('a ride at one speed has the right place at each moment, there and back', async (t) => {
  const path = new WaypointPath(parse(track(...CORNERS.map(([lat, lon]) => trackPoint(lat, lon)))));
  const lengths = [0, 1, 2].map((index) => metersApart(CORNERS[index] ?? [0, 0], CORNERS[index + 1] ?? [0, 0]));
  const totalMeters = lengths.reduce((sum, length) => sum + length, 0);
  t.ok(Math.abs(path.meters - totalMeters) < totalMeters * 1e-3, 'the length is that on the sphere');
  for (const isBack of [false, true]) {
    const ride = path.ride({ startMs: 1000, speedMetersPerSecond: 5, isBack });
    // At 5 m/s each metre takes 200 ms. The length may be off by 0.5 %, so by 1 ms for each metre.
    t.ok(Math.abs(ride.endMs - 1000 - (totalMeters / 5) * 1000) < totalMeters, 'the duration follows from the length');
    const corners = isBack ? [...CORNERS].reverse() : CORNERS;
    const legs = isBack ? [...lengths].reverse() : lengths;
    let riddenMeters = 0;
    // The last argument of `positionOf`, here and below, is the position's uncertainty in metres, which does not
    // matter.
    for (const [index, corner] of corners.entries()) {
      const { latitudeDegrees, longitudeDegrees } = positionOf(
        path.city,
        ride.at(1000 + (riddenMeters / 5) * 1000).place,
        1,
      );
      t.ok(metersApart(corner, [latitudeDegrees, longitudeDegrees]) < 2, `corner ${index}`);
      riddenMeters += legs[index] ?? 0;
    }
    // The first leg leads due north.
    const onFirstLeg = ride.at(1000 + ((isBack ? totalMeters - 100 : 100) / 5) * 1000);
    t.equal(onFirstLeg.directionDegrees, isBack ? 180 : 0);
    t.equal(onFirstLeg.speedMetersPerSecond, 5);
    t.same(ride.stops(0), []);
    t.same(ride.at(0).place, isBack ? path.end : path.start, 'before its start the ride is at its first point');
    t.same(ride.end.place, isBack ? path.start : path.end);
    t.equal(ride.at(ride.endMs).speedMetersPerSecond, 0);
  }
});

t.test('a recorded ride has the recorded times, speeds and stops', async (t) => {
  const time = (second: number): string => new Date(Date.UTC(2026, 4, 1, 10) + second * 1000).toISOString();
  const [a, b, , d] = CORNERS;
  // The rider stands at corner b from second 100 to 160; the points there differ by less than a metre.
  const recorded = track(
    trackPoint(a[0], a[1], time(0)),
    trackPoint(b[0], b[1], time(100)),
    trackPoint(b[0], b[1] + 0.00001, time(100)),
    trackPoint(b[0], b[1] + 0.00001, time(130)),
    trackPoint(b[0], b[1], time(160)),
    trackPoint(d[0], d[1], time(400)),
  );
  const path = new WaypointPath(parse(recorded));
  // A recording has its own times, so the given speed has no effect.
  const ride = path.ride({ startMs: 5000, speedMetersPerSecond: 99 });
  t.equal(ride.endMs, 405_000);
  t.ok(Math.abs(ride.at(50_000).speedMetersPerSecond - metersApart(a, b) / 100) < 0.02);
  t.same(ride.stops(15_000), [{ startMs: 105_000, endMs: 165_000 }], 'the stop of 60 s');
  t.same(ride.stops(61_000), [], 'no stop lasts 61 s');
  // The way back is the recording of 400 s in reverse: it stops from 400 − 160 to 400 − 100 s.
  const rideBack = path.ride({ startMs: 0, speedMetersPerSecond: 99, isBack: true });
  t.same(rideBack.stops(15_000), [{ startMs: 240_000, endMs: 300_000 }]);
  t.same(rideBack.at(120_000).place, ride.at(5000 + 280_000).place);
});

t.test('a ride across the antimeridian stays on the Earth', async (t) => {
  const path = new WaypointPath(parse(track(trackPoint(-17, 179.99), trackPoint(-17, -179.99))));
  t.ok(Math.abs(path.meters - metersApart([-17, 0], [-17, 0.02])) < 5);
  const ride = path.ride({ startMs: 0, speedMetersPerSecond: 5 });
  const { longitudeDegrees } = positionOf(path.city, ride.at(ride.endMs - 1000).place, 1);
  t.ok(longitudeDegrees < -179.9 && longitudeDegrees >= -180, String(longitudeDegrees));
});

/** The distance of a point from a polyline, and the distance along the polyline to the nearest place, in metres. */
function nearest(polyline: readonly LatLon[], [lat, lon]: LatLon): { offMeters: number; alongMeters: number } {
  // Of latitude: a 360th of the circumference of a sphere of 6,371 km.
  const metersPerDegree = 111_195;
  const cosine = Math.cos((lat * Math.PI) / 180);
  const flatPoints = polyline.map(
    ([cornerLat, cornerLon]) =>
      [(cornerLon - lon) * metersPerDegree * cosine, (cornerLat - lat) * metersPerDegree] as const,
  );
  let best = { offMeters: Number.POSITIVE_INFINITY, alongMeters: 0 };
  let metersBefore = 0;
  for (const [index, [x, y]] of flatPoints.entries()) {
    const [toX, toY] = flatPoints[index + 1] ?? [x, y];
    const length = Math.hypot(toX - x, toY - y);
    const share = length === 0 ? 0 : Math.min(1, Math.max(0, -(x * (toX - x) + y * (toY - y)) / length ** 2));
    const offMeters = Math.hypot(x + share * (toX - x), y + share * (toY - y));
    if (offMeters < best.offMeters) best = { offMeters, alongMeters: metersBefore + share * length };
    metersBefore += length;
  }
  return best;
}

t.test(
  'in a live ride along a file the merchant’s receiver gets GPS pings along the path, within their uncertainty',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'lockgate-route-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'mine.gpx');
    // A recording of 12 minutes around the corners, with a point each 10 s.
    // Each of the three legs has 24 points, and the last corner is one more.
    const points = Array.from({ length: 73 }, (_, index): LatLon => {
      const [from, to, share] = [
        CORNERS[Math.floor(index / 24)],
        CORNERS[Math.floor(index / 24) + 1],
        (index % 24) / 24,
      ];
      if (from === undefined || to === undefined) return CORNERS[3];
      return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
    });
    const time = (index: number): string => new Date(Date.UTC(2026, 4, 1, 10) + index * 10_000).toISOString();
    writeFileSync(file, track(...points.map(([lat, lon], index) => trackPoint(lat, lon, time(index)))));

    const speed = 120;
    const gateway = await testGateway(t, { speed });
    const receiver = await testReceiver(t);
    await gateway.accounts.addWebhookUrl({ url: receiver.url, ordered: true });
    const pings = (): Ping[] => receiver.requests.map(({ json }) => json as unknown as Ping);
    const rides = (): Ping[] => {
      return pings().filter(({ ping_type: type, reason }) => type === 'gps' && reason === 'REASON_UNLOCKED_PING');
    };
    const operator = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
    const options = ['--route', file, '--locks', '1', '--speed', String(speed), '--seed', 'mine'];
    const run = new Program(t, process.execPath, [LOCKGATE, 'sim', 'run', ...options, ...operator, '--json']);
    // The lock is locked at the end of the ride and reports that with a separate state change.
    const isOver = (): boolean => rides().length > 10 && pings().at(-1)?.lock_state === 'locked';
    for (let count = 1; !isOver(); count++) await receiver.waitForRequests(count);
    run.kill('SIGINT');
    t.equal((await run.waitForExit()).code, 0);
    const summary = JSON.parse(run.stdout.join('\n'));
    t.match(summary, { route: file, around: null });
    t.match(summary.repeat, `--route ${file}`);

    const ridePings = rides()
      .sort((a, b) => a.date.localeCompare(b.date))
      .map(({ latitude, longitude, uncertainty, speed: metersPerSecond }) => {
        return { ...nearest(points, [latitude, longitude]), uncertainty, metersPerSecond };
      });
    // One each 30 s would be 24. At this speed a delay of 0.25 s on this machine is 30 s for the lock.
    t.ok(ridePings.length >= 18, `${ridePings.length} pings in 12 minutes`);
    t.ok(ridePings.every(({ offMeters, uncertainty }) => offMeters <= 2 * uncertainty));
    // The uncertainty is the radius that contains the true place in 95 % of the fixes.
    t.ok(ridePings.filter(({ offMeters, uncertainty }) => offMeters <= uncertainty).length >= 0.9 * ridePings.length);
    // The recorded speed is about 2.1 m/s (500 m in 4 minutes), and the GPS receiver adds an error.
    t.ok(ridePings.every(({ metersPerSecond }) => metersPerSecond > 0.2 && metersPerSecond < 6));
    const totalMeters = nearest(points, CORNERS[3]).alongMeters;
    t.ok(
      (ridePings[0]?.alongMeters ?? 0) < totalMeters * 0.2 && (ridePings.at(-1)?.alongMeters ?? 0) > totalMeters * 0.8,
      'from one end to the other',
    );
    for (const [index, { alongMeters, uncertainty }] of ridePings.entries())
      t.ok(alongMeters > (ridePings[index - 1]?.alongMeters ?? 0) - 2 * uncertainty, `forward: ${alongMeters}`);
  },
);

/** The members of a ping's webhook (docs/webhooks.md) that the test reads. */
interface Ping {
  readonly ping_type: string;
  readonly reason: string;
  readonly lock_state: string;
  readonly date: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly uncertainty: number;
  readonly speed: number;
}
