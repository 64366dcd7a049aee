/** Reads the flags --around and --route: where the locks of a run are, and the route along which they are ridden. */
import { type City, cityAround } from '../../../firmware-sim/world/routes/city.js';
import { readRouteFile } from '../../../firmware-sim/world/routes/route-file.js';
import { WaypointPath } from '../../../firmware-sim/world/routes/waypoint-route.js';
import { MAX_LATITUDE_DEGREES } from '../../../firmware-sim/world/routes/waypoints.js';
import { LockgateError } from '../../../proto/errors.js';

/** The simulated city and the path of all rides; undefined for the defaults. */
export interface SimPlace {
  readonly city?: City;
  readonly path?: WaypointPath;
}

/**
 * The maximum distance of a route's start from the city's centre. Farther away, distances in metres are too distorted.
 */
const MAX_METERS_AWAY = 100_000;

/** Reads both flags. @throws LockgateError `input-…` for a wrong point or file */
export async function readPlace(route: string | undefined, around: string | undefined): Promise<SimPlace> {
  const city = around === undefined ? undefined : parseAround(around);
  if (route === undefined) return city === undefined ? {} : { city };
  const path = new WaypointPath(await readRouteFile(route), city);
  if (city !== undefined && startsTooFar(path)) {
    const limitKm = MAX_METERS_AWAY / 1000;
    throw new LockgateError('input-around', `--around is ${around}: expected a point within ${limitKm} km of ${route}`);
  }
  return { city: path.city, path };
}

function parseAround(text: string): City {
  const match = /^([+-]?\d+(?:\.\d+)?),([+-]?\d+(?:\.\d+)?)$/.exec(text.replaceAll(' ', ''));
  // Without a match both are NaN, which is within no limit.
  const [latitude, longitude] = [Number(match?.[1]), Number(match?.[2])];
  if (Math.abs(latitude) <= MAX_LATITUDE_DEGREES && Math.abs(longitude) <= 180) return cityAround(latitude, longitude);
  const latitudes = `LAT from -${MAX_LATITUDE_DEGREES} to ${MAX_LATITUDE_DEGREES}`;
  const expected = `LAT,LON in degrees such as 52.37,4.89, ${latitudes}`;
  throw new LockgateError('input-around', `--around is ${JSON.stringify(text)}: expected ${expected}`);
}

/**
 * Whether the route starts too far from the city. The rest of it is not checked: a route whose city is around its start
 * may lead away from it too, up to the maximum length of a route (500 km).
 */
function startsTooFar({ start }: WaypointPath): boolean {
  return Math.sqrt(start.eastMeters ** 2 + start.northMeters ** 2) > MAX_METERS_AWAY;
}
