/** The flags --around and --route: where the locks of a run live, and the route that they ride. */
import { type City, cityAround } from '../../../firmware-sim/world/routes/city.js';
import { readRouteFile } from '../../../firmware-sim/world/routes/route-file.js';
import { WaypointPath } from '../../../firmware-sim/world/routes/waypoint-route.js';
import { MAX_LATITUDE_DEGREES } from '../../../firmware-sim/world/routes/waypoints.js';
import { LockgateError } from '../../../proto/errors.js';

/** City and path of a fleet; the defaults of a fleet where they are left out. */
export interface SimPlace {
  readonly city?: City;
  readonly path?: WaypointPath;
}

/** The greatest distance of the city from the route: farther away its metres are too distorted. */
const MOST_METERS_AWAY = 100_000;

/** Reads both. @throws LockgateError `input-…` for a wrong point or file */
export async function readPlace(route: string | undefined, around: string | undefined): Promise<SimPlace> {
  const city = around === undefined ? undefined : parseAround(around);
  if (route === undefined) return city === undefined ? {} : { city };
  const path = new WaypointPath(await readRouteFile(route), city);
  if (city !== undefined && isFar(path)) {
    const most = MOST_METERS_AWAY / 1000;
    throw new LockgateError('input-around', `--around is ${around}: expected a point within ${most} km of ${route}`);
  }
  return { city: path.city, path };
}

function parseAround(text: string): City {
  const match = /^([+-]?\d+(?:\.\d+)?),([+-]?\d+(?:\.\d+)?)$/.exec(text.replaceAll(' ', ''));
  const [latitude, longitude] = [Number(match?.[1]), Number(match?.[2])];
  if (Math.abs(latitude) <= MAX_LATITUDE_DEGREES && Math.abs(longitude) <= 180) return cityAround(latitude, longitude);
  const latitudes = `LAT from -${MAX_LATITUDE_DEGREES} to ${MAX_LATITUDE_DEGREES}`;
  const expected = `LAT,LON in degrees such as 52.37,4.89, ${latitudes}`;
  throw new LockgateError('input-around', `--around is ${JSON.stringify(text)}: expected ${expected}`);
}

/** Only the start is checked: a route has at most 500 km. */
function isFar({ start }: WaypointPath): boolean {
  return Math.sqrt(start.eastMeters ** 2 + start.northMeters ** 2) > MOST_METERS_AWAY;
}
