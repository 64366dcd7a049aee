/** The way of a file, as places around the middle of a city that something else lives in already. */
import { LockgateError } from '../../../proto/errors.js';
import type { City } from './city.js';
import { readRouteFile } from './route-file.js';
import { WaypointPath } from './waypoint-route.js';

/** How far from the middle of the city a place may be, so that metres still are metres. */
export const FARTHEST_METERS = 100_000;

/**
 * Reads a file. `name` is what the error calls it that says how far away it is.
 *
 * @throws LockgateError `input-file` for a file that can't be read, `input-route` for what is in it
 */
export async function readWayFile(file: string, city: City, name = file): Promise<WaypointPath> {
  const way = new WaypointPath(await readRouteFile(file), city);
  const { eastMeters, northMeters } = way.start;
  if (Math.abs(eastMeters) <= FARTHEST_METERS && Math.abs(northMeters) <= FARTHEST_METERS) return way;
  const far = `${name} begins far away: expected within 100 km of the middle of the city`;
  throw new LockgateError('input-route', far);
}
