/**
 * Reads a route from a GPX or GeoJSON file. The file's first character distinguishes the formats. A file without a
 * valid route is an input error that says where in the file the mistake is and what was expected there.
 */
import { LockgateError } from '../../../proto/errors.js';
import { readTextFile } from '../../text-file.js';
import type { City } from './city.js';
import { parseGeoJson } from './geojson.js';
import { parseGpx } from './gpx.js';
import { WaypointPath } from './waypoint-route.js';
import type { Waypoints } from './waypoints.js';

/**
 * Three times as much as a very long track needs: 36,000 points of about 300 bytes, with all extensions of a watch.
 */
export const MAX_ROUTE_FILE_BYTES = 32 * 1024 * 1024;
/** Farther than this from the middle of a city, its flat coordinates are too inaccurate. */
export const MAX_METERS_FROM_CITY = 100_000;

const EXPECTED = 'a GPX file, or GeoJSON with a line';

/**
 * Reads a route file.
 *
 * @throws LockgateError `input-file` for a file that can't be read or is too large, `input-route` for its content
 */
export async function readRouteFile(path: string): Promise<Waypoints> {
  return parseRouteFile(await readTextFile(path, MAX_ROUTE_FILE_BYTES), path);
}

/**
 * Reads a route file into the coordinates of a given city. An error about the distance calls the file `name`.
 *
 * @throws LockgateError as {@link readRouteFile}, and `input-route` for a route that starts over 100 km away
 */
export async function readRouteInCity(file: string, city: City, name = file): Promise<WaypointPath> {
  const path = new WaypointPath(await readRouteFile(file), city);
  const { eastMeters, northMeters } = path.start;
  if (Math.abs(eastMeters) <= MAX_METERS_FROM_CITY && Math.abs(northMeters) <= MAX_METERS_FROM_CITY) return path;
  const message = `${name} starts far away: expected within 100 km of the middle of the city`;
  throw new LockgateError('input-route', message);
}

/**
 * Reads the text of a route file, called `name` in errors.
 *
 * @throws LockgateError `input-route`: with the file, the line (or the JSON pointer) and what was expected
 */
export function parseRouteFile(text: string, name: string): Waypoints {
  const content = text.startsWith('\ufeff') ? text.slice(1) : text;
  const character = /\S/.exec(content)?.[0];
  if (character === '<') return parseGpx(content, name);
  if (character === '{') return parseGeoJson(content, name);
  const found = character === undefined ? 'the file is empty' : `the file starts with ${JSON.stringify(character)}`;
  throw new LockgateError('input-route', `${name}:1: ${found}: expected ${EXPECTED}`);
}
