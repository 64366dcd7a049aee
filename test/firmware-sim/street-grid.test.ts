/**
 * A city with a grid of streets: the grid, that rides keep to it, and that its GeoJSON has the very streets that are
 * ridden. That grids change no ride in a city without one, the golden traces of simulator.test.ts check.
 */
import t from 'tap';
import { Prng } from '../../firmware-sim/prng.js';
import { DEMO_SCRIPTS } from '../../firmware-sim/world/demo-script.js';
import { EVERYDAY, LIVELY } from '../../firmware-sim/world/pace.js';
import { PlannedWorld } from '../../firmware-sim/world/planned-world.js';
import { AMSTERDAM, type City, metersAlong, type Place, placeOf } from '../../firmware-sim/world/routes/city.js';
import { cityWithStreets, onStreet, streetsGeoJson } from '../../firmware-sim/world/routes/street-grid.js';
import { StreetRoute } from '../../firmware-sim/world/routes/street-route.js';
import { Seconds } from '../../proto/clock.js';
import { MIDNIGHT_MS } from '../helpers/pair/model-lock.js';

const CITY = cityWithStreets(AMSTERDAM, 'test');
const ROTATION = AMSTERDAM.gridRotationDegrees;
const MIDDLE: Place = { eastMeters: 0, northMeters: 0 };

/**
 * The streets of the GeoJSON. The grid has two axes, `along` its direction and `across` it. A street is parallel to one
 * of them and crosses the other; it is listed under the axis that it crosses, by its place there, in metres from the
 * middle.
 */
function linesOf(city: City) {
  const along: number[] = [];
  const across: number[] = [];
  for (const line of streetsGeoJson(city).coordinates) {
    const places = line.map(([longitude = 0, latitude = 0]) => placeOf(city, latitude, longitude));
    const coordinatesOn = (degrees: number): number[] => places.map((place) => metersAlong(MIDDLE, place, degrees));
    const [onAlong, onAcross] = [coordinatesOn(ROTATION), coordinatesOn(ROTATION + 90)];
    const isConstant = (values: number[]): boolean => Math.max(...values) - Math.min(...values) < 0.1;
    if (isConstant(onAcross)) across.push(onAcross[0] as number);
    else if (isConstant(onAlong)) along.push(onAlong[0] as number);
    else throw new Error('a street follows neither direction of the grid');
  }
  return { along, across };
}

const DRAWN = linesOf(CITY);

/** The distance to the nearest drawn street. */
function metersFromStreet(place: Place): number {
  const distance = (lines: readonly number[], degrees: number): number =>
    Math.min(...lines.map((line) => Math.abs(line - metersAlong(MIDDLE, place, degrees))));
  return Math.min(distance(DRAWN.along, ROTATION), distance(DRAWN.across, ROTATION + 90));
}

t.test('a grid has blocks of 60 to 220 m, the same for the same seed', async (t) => {
  t.same(cityWithStreets(AMSTERDAM, 'test'), CITY);
  t.notSame(cityWithStreets(AMSTERDAM, 'other'), CITY);
  for (const lines of [DRAWN.along, DRAWN.across]) {
    const blocks = lines.slice(1).map((line, index) => line - (lines[index] as number));
    t.ok(blocks.length > 50, `${blocks.length} blocks`);
    t.ok(
      Math.min(...blocks) > 59.9 && Math.max(...blocks) < 220.1,
      `${Math.min(...blocks)} to ${Math.max(...blocks)} m`,
    );
    t.ok(new Set(blocks.map(Math.round)).size > 30, 'of many lengths');
  }
  t.same(streetsGeoJson(AMSTERDAM).coordinates, [], 'a city without a grid has no streets to draw');
  t.same(onStreet(AMSTERDAM, { eastMeters: 1, northMeters: 2 }), { eastMeters: 1, northMeters: 2 });
});

t.test('a route keeps to the drawn streets and reaches its end', async (t) => {
  const prng = new Prng(1);
  let farthest = 0;
  let jumps = 0;
  for (let seed = 0; seed < 300; seed++) {
    const somewhere = (): Place => ({ eastMeters: prng.between(-2500, 2500), northMeters: prng.between(-2500, 2500) });
    const [from, to] = [onStreet(CITY, somewhere()), onStreet(CITY, somewhere())];
    t.ok(metersFromStreet(to) < 0.1);
    const route = new StreetRoute(new Prng(seed), { city: CITY, from, to, startMs: 0, speedMetersPerSecond: 5 });
    let before = route.at(0).place;
    for (let atMs = 0; atMs < route.endMs + Seconds(2); atMs += Seconds(2)) {
      const { place } = route.at(atMs);
      farthest = Math.max(farthest, metersFromStreet(place));
      if (Math.hypot(place.eastMeters - before.eastMeters, place.northMeters - before.northMeters) > 13) jumps += 1;
      before = place;
    }
    const { place } = route.at(route.endMs);
    const missed = Math.hypot(place.eastMeters - to.eastMeters, place.northMeters - to.northMeters);
    if (missed > 0.01) t.fail(`seed ${seed} ends ${missed} m away`);
  }
  t.ok(farthest < 0.1, `at most ${farthest} m from a street`);
  t.equal(jumps, 0, 'nobody jumps');
});

t.test('a route from and to places beside streets begins and ends on the nearest ones', async (t) => {
  const [from, to] = [
    { eastMeters: 31, northMeters: -17 },
    { eastMeters: -900, northMeters: 650 },
  ];
  const route = new StreetRoute(new Prng(1), { city: CITY, from, to, startMs: 0, speedMetersPerSecond: 5 });
  t.same(
    [route.at(0).place, route.end.place].map((place) => metersFromStreet(place) < 0.1),
    [true, true],
  );
  const none = new StreetRoute(new Prng(1), { city: CITY, from, to: from, startMs: 0, speedMetersPerSecond: 5 });
  t.equal(none.meters, 0);
});

t.test('bicycles of a city with streets are on a street at any time: parked, ridden and stolen', async (t) => {
  for (const pace of [EVERYDAY, LIVELY])
    for (const script of [undefined, ...DEMO_SCRIPTS.slice(0, 2)]) {
      const options = { city: CITY, startMs: MIDNIGHT_MS, pace, script };
      const world = new PlannedWorld({ prng: new Prng(5), ...options });
      let farthest = 0;
      for (let eventCount = 0; eventCount < 1500; eventCount++) {
        const atMs = world.nextAtMs();
        world.takeEvent();
        const { latitudeDegrees, longitudeDegrees } = world.trueFixAt(atMs).position;
        farthest = Math.max(farthest, metersFromStreet(placeOf(CITY, latitudeDegrees, longitudeDegrees)));
      }
      t.ok(farthest < 0.1, `at most ${farthest} m from a street`);
    }
});
