/**
 * Reads a route from a file, GPX or GeoJSON, which its first character tells apart. A route that can't be ridden is the
 * caller's mistake: the error says where in the file it is and what was expected there.
 */
import { LockgateError } from '../../../proto/errors.js';
import { readTextFile } from '../../text-file.js';
import type { City } from './city.js';
import { parseGeoJson } from './geojson.js';
import { parseGpx } from './gpx.js';
import { WaypointPath } from './waypoint-route.js';
import type { Waypoints } from './waypoints.js';

/** A track point with all the extensions of a sports watch has some 300 bytes; few tracks have over 36,000 points. */
export const MAX_ROUTE_FILE_BYTES = 32 * 1024 * 1024;
/** Farther than this from the middle of a city, metres on its plane are no longer metres on the Earth. */
export const MAX_METERS_FROM_CITY = 100_000;

const EXPECTED = 'a GPX file, or GeoJSON with a line';

/**
 * Reads a file.
 *
 * @throws LockgateError `input-file` for a file that can't be read or is too large, `input-route` for its content
 */
export async function readRouteFile(path: string): Promise<Waypoints> {
  return parseRouteFile(await readTextFile(path, MAX_ROUTE_FILE_BYTES), path);
}

/**
 * Reads a file into the coordinates of a given city. `name` is what an error about the distance calls the file.
 *
 * @throws LockgateError as {@link readRouteFile}, and `input-route` for a route that starts over 100 km away
 */
export async function readRouteInCity(file: string, city: City, name = file): Promise<WaypointPath> {
  const path = new WaypointPath(await readRouteFile(file), city);
  const { eastMeters, northMeters } = path.start;
  if (Math.abs(eastMeters) <= MAX_METERS_FROM_CITY && Math.abs(northMeters) <= MAX_METERS_FROM_CITY) return path;
  const far = `${name} begins far away: expected within 100 km of the middle of the city`;
  throw new LockgateError('input-route', far);
}

/**
 * Reads the text of a file. `name` is what its errors call it.
 *
 * @throws LockgateError `input-route`: with the file, the line (or the JSON pointer) and what was expected
 */
export function parseRouteFile(text: string, name: string): Waypoints {
  const content = text.startsWith('\ufeff') ? text.slice(1) : text;
  const first = /\S/.exec(content)?.[0];
  if (first === '<') return parseGpx(content, name);
  if (first === '{') return parseGeoJson(content, name);
  const what = first === undefined ? 'the file is empty' : `the file begins with ${JSON.stringify(first)}`;
  throw new LockgateError('input-route', `${name}:1: ${what}: expected ${EXPECTED}`);
}
