/**
 * A ride of one's own, from a file: GPX or GeoJSON, told apart by how it begins. What can't be ridden is the caller's
 * mistake, and the error says where in the file it is and what was expected there.
 */
import { LockgateError } from '../../../proto/errors.js';
import { readTextFile } from '../text-file.js';
import { parseGeoJson } from './geojson.js';
import { parseGpx } from './gpx.js';
import type { Waypoints } from './waypoints.js';

/** A point of a track with all that watches add to it has some 300 bytes, and there are few over 36,000. */
export const MOST_ROUTE_BYTES = 32 * 1024 * 1024;

const EXPECTED = 'a GPX file, or GeoJSON with a line';

/**
 * Reads a file.
 *
 * @throws LockgateError `input-file` for a file that can't be read or is too large, `input-route` for what is in it
 */
export async function readRouteFile(path: string): Promise<Waypoints> {
  return parseRouteFile(await readTextFile(path, MOST_ROUTE_BYTES), path);
}

/**
 * Reads the text of a file. `name` is what its errors call it.
 *
 * @throws LockgateError `input-route`: with the file, the line (or where in the JSON) and what was expected
 */
export function parseRouteFile(text: string, name: string): Waypoints {
  const content = text.startsWith('\ufeff') ? text.slice(1) : text;
  const first = /\S/.exec(content)?.[0];
  if (first === '<') return parseGpx(content, name);
  if (first === '{') return parseGeoJson(content, name);
  const what = first === undefined ? 'the file is empty' : `the file begins with ${JSON.stringify(first)}`;
  throw new LockgateError('input-route', `${name}:1: ${what}: expected ${EXPECTED}`);
}
