/**
 * The points of a route file. The reader of each file format passes its points through `WaypointList`, which refuses
 * invalid points and routes. Its errors name the place in the file and what was expected.
 */
import { Hours, type Milliseconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { cosineOf, degreesEast } from './angle.js';
import { METERS_PER_DEGREE } from './city.js';

/** A point of a route file. */
export interface Waypoint {
  readonly latitudeDegrees: number;
  readonly longitudeDegrees: number;
  /** When the point was recorded, ms since the epoch; null in a file without times. */
  readonly atMs: number | null;
}

/** A valid route: at least two points, not all the same. Either all have times, in ascending order, or none has. */
export interface Waypoints {
  /** The file's name, for messages. */
  readonly name: string;
  readonly points: readonly Waypoint[];
  readonly isTimed: boolean;
}

/** A recording of two days with a point each second has fewer. */
export const MAX_WAYPOINTS = 200_000;
/** Longer than any single bicycle ride. */
const MAX_ROUTE_METERS = 500_000;
/** A ride must end before the same ride of the next day starts. */
const MAX_RIDE_MS: Milliseconds = Hours(24);
/** Nearer to a pole, the plane of a city is too distorted. */
export const MAX_LATITUDE_DEGREES = 85;

/** Collects the points of one file, in order. */
export class WaypointList {
  readonly #name: string;
  readonly #points: Waypoint[] = [];
  #meters = 0;

  /** @param name the file's name, for error messages */
  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Adds a point. `reference` says where in the file it is, for messages, such as `:12` or `: /coordinates/3`.
   *
   * @throws LockgateError `input-route`
   */
  add(point: Waypoint, reference: string): void {
    const { latitudeDegrees, longitudeDegrees, atMs } = point;
    // Negated, so that NaN is refused too.
    if (!(Math.abs(latitudeDegrees) <= MAX_LATITUDE_DEGREES))
      throw this.errorAt(
        reference,
        `the latitude is ${latitudeDegrees}`,
        `degrees from -${MAX_LATITUDE_DEGREES} to ${MAX_LATITUDE_DEGREES}`,
      );
    if (!(Math.abs(longitudeDegrees) <= 180))
      throw this.errorAt(reference, `the longitude is ${longitudeDegrees}`, 'degrees from -180 to 180');
    const previous = this.#points.at(-1);
    if (previous !== undefined && (previous.atMs === null) !== (atMs === null)) {
      const mistake =
        atMs === null ? 'no time, and the points before have one' : 'a time, and the points before have none';
      throw this.errorAt(reference, `this point has ${mistake}`, 'a time in every point or in none');
    }
    if (previous !== undefined && previous.atMs !== null && atMs !== null && atMs < previous.atMs)
      throw this.errorAt(reference, 'the time goes back', `none before ${new Date(previous.atMs).toISOString()}`);
    this.#points.push(point);
    this.#meters += previous === undefined ? 0 : metersBetween(previous, point);
    this.#checkLimits(reference);
  }

  #checkLimits(reference: string): void {
    const [first, last] = [this.#points[0], this.#points.at(-1)];
    if (this.#points.length > MAX_WAYPOINTS)
      throw this.errorAt(
        reference,
        'the route has too many points',
        `at most ${MAX_WAYPOINTS.toLocaleString('en-US')}`,
      );
    if (this.#meters > MAX_ROUTE_METERS)
      throw this.errorAt(reference, 'the route is too long', `at most ${MAX_ROUTE_METERS / 1000} km up to here`);
    if ((last?.atMs ?? 0) - (first?.atMs ?? 0) > MAX_RIDE_MS)
      throw this.errorAt(
        reference,
        'the ride lasts too long',
        `at most ${MAX_RIDE_MS / Hours(1)} h from the first time`,
      );
  }

  /**
   * Returns all points, at the end of the file.
   *
   * @param reference where in the file the points are, as for `add`
   * @param expected what such a file should contain
   * @throws LockgateError `input-route`
   */
  finish(reference: string, expected: string): Waypoints {
    const points = this.#points;
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined || points.length < 2)
      throw this.errorAt(reference, `the route has ${points.length === 0 ? 'no points' : 'one point'}`, expected);
    if (this.#meters === 0)
      throw this.errorAt(reference, 'all points of the route are the same', 'a route with some length');
    const isTimed = first.atMs !== null;
    if (isTimed && first.atMs === last.atMs)
      throw this.errorAt(reference, 'all times are the same', 'a ride that takes time');
    return { name: this.#name, points, isTimed };
  }

  /** Makes the error for a mistake in the file. */
  errorAt(reference: string, found: string, expected: string): LockgateError {
    return new LockgateError('input-route', `${this.#name}${reference}: ${found}: expected ${expected}`);
  }
}

/** The distance of two points on a plane, which is accurate enough for the limits. */
function metersBetween(from: Waypoint, to: Waypoint): number {
  const north = (to.latitudeDegrees - from.latitudeDegrees) * METERS_PER_DEGREE;
  const degrees = degreesEast(from.longitudeDegrees, to.longitudeDegrees);
  const east = degrees * METERS_PER_DEGREE * cosineOf(from.latitudeDegrees);
  return Math.sqrt(north * north + east * east);
}
