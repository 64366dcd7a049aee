/**
 * The points of a route, as a file has them. Whatever kind of file it is, each point passes here, and what can't be
 * ridden is refused with the place in the file and what was expected.
 */
import { Hours, type Milliseconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { cosineOf, degreesEast } from './angle.js';
import { METERS_PER_DEGREE } from './city.js';

export interface Waypoint {
  readonly latitudeDegrees: number;
  readonly longitudeDegrees: number;
  /** When somebody was there, ms since the epoch; null where the file does not say. */
  readonly atMs: number | null;
}

/** At least two points, of which not all are the same; all of them with times, none of which goes back, or none. */
export interface Waypoints {
  /** The file's, for people. */
  readonly name: string;
  readonly points: readonly Waypoint[];
  readonly isTimed: boolean;
}

/** A ride of two days with a point each second has fewer. */
export const MOST_WAYPOINTS = 200_000;
/** What a bicycle can be ridden at a stretch. */
const MOST_METERS = 500_000;
/** Rides belong to a day's pattern. */
const MOST_DURATION: Milliseconds = Hours(24);
/** Beyond, a degree of longitude is too short to reckon with metres on a plane. */
export const MOST_LATITUDE = 85;

/** Collects the points of one file, in their order. */
export class WaypointList {
  readonly #name: string;
  readonly #points: Waypoint[] = [];
  #meters = 0;

  /** @param name the file's, for what is wrong with it */
  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Takes a point. `where` says for people where in the file it is, such as `:12` or `: /coordinates/3`.
   *
   * @throws LockgateError `input-route`
   */
  add(point: Waypoint, where: string): void {
    const { latitudeDegrees, longitudeDegrees, atMs } = point;
    if (!(Math.abs(latitudeDegrees) <= MOST_LATITUDE))
      throw this.bad(where, `the latitude is ${latitudeDegrees}`, `degrees from -${MOST_LATITUDE} to ${MOST_LATITUDE}`);
    if (!(Math.abs(longitudeDegrees) <= 180))
      throw this.bad(where, `the longitude is ${longitudeDegrees}`, 'degrees from -180 to 180');
    const before = this.#points.at(-1);
    if (before !== undefined && (before.atMs === null) !== (atMs === null)) {
      const which = atMs === null ? 'no time, and those before have one' : 'a time, and those before have none';
      throw this.bad(where, `this point has ${which}`, 'a time in every point or in none');
    }
    if (before !== undefined && before.atMs !== null && atMs !== null && atMs < before.atMs)
      throw this.bad(where, 'the time goes back', `none before ${new Date(before.atMs).toISOString()}`);
    this.#points.push(point);
    this.#meters += before === undefined ? 0 : metersBetween(before, point);
    this.#keepWithin(where);
  }

  #keepWithin(where: string): void {
    const [first, last] = [this.#points[0], this.#points.at(-1)];
    if (this.#points.length > MOST_WAYPOINTS)
      throw this.bad(where, 'the route has too many points', `at most ${MOST_WAYPOINTS.toLocaleString('en-US')}`);
    if (this.#meters > MOST_METERS)
      throw this.bad(where, 'the route is too long', `at most ${MOST_METERS / 1000} km up to here`);
    if ((last?.atMs ?? 0) - (first?.atMs ?? 0) > MOST_DURATION)
      throw this.bad(where, 'the ride lasts too long', `at most ${MOST_DURATION / Hours(1)} h from the first time`);
  }

  /**
   * All points, when the file is at its end.
   *
   * @param where as above: what of the file has too few
   * @param expected what in such a file would have been a route
   * @throws LockgateError `input-route`
   */
  finish(where: string, expected: string): Waypoints {
    const points = this.#points;
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined || points.length < 2)
      throw this.bad(where, `the route has ${points.length === 0 ? 'no points' : 'one point'}`, expected);
    if (this.#meters === 0) throw this.bad(where, 'all points of the route are the same', 'a way with some length');
    const isTimed = first.atMs !== null;
    if (isTimed && first.atMs === last.atMs) throw this.bad(where, 'all times are the same', 'a ride that takes time');
    return { name: this.#name, points, isTimed };
  }

  /** What is thrown for something wrong in the file. */
  bad(where: string, what: string, expected: string): LockgateError {
    return new LockgateError('input-route', `${this.#name}${where}: ${what}: expected ${expected}`);
  }
}

/** On a plane, which is exact enough for what is to be kept within limits. */
function metersBetween(one: Waypoint, other: Waypoint): number {
  const north = (other.latitudeDegrees - one.latitudeDegrees) * METERS_PER_DEGREE;
  const degrees = degreesEast(one.longitudeDegrees, other.longitudeDegrees);
  const east = degrees * METERS_PER_DEGREE * cosineOf(one.latitudeDegrees);
  return Math.sqrt(north * north + east * east);
}
