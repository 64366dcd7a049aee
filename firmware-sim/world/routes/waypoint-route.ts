/**
 * A ride along the points of a file, there or back: at the recorded speed where the points have times, otherwise at a
 * constant speed. `WaypointPath` is the geometry; a ride along it is a `Route`.
 */
import type { Milliseconds } from '../../../proto/clock.js';
import { directionOf } from './angle.js';
import { type City, cityAround, type Place, placeOf } from './city.js';
import type { Motion, Route, Stop } from './route.js';
import type { Waypoints } from './waypoints.js';

/** A recorded speed below this is the drift of a receiver that stands still. */
const STANDSTILL_METERS_PER_SECOND = 0.4;

/** When and how a path is ridden. */
export interface WaypointRide {
  readonly startMs: number;
  /** The speed for a file without times. */
  readonly speedMetersPerSecond: number;
  /** Whether the ride goes from the last point to the first. */
  readonly isBack?: boolean;
}

/** The points of a file as places in a city. It can be ridden any number of times. */
export class WaypointPath {
  readonly city: City;
  readonly start: Place;
  readonly end: Place;
  /** The length of the path. */
  readonly meters: number;
  /** Whether the points have times. */
  readonly isTimed: boolean;
  /** The coordinates of the points, in metres from the middle of the city. */
  readonly #east: Float64Array;
  readonly #north: Float64Array;
  /** The progress at each point: ms since the first point where there are times, otherwise metres. */
  readonly #progress: Float64Array;
  /**
   * Direction and length of the segment that starts at each point. A segment without length has the previous direction.
   */
  readonly #directions: Float64Array;
  readonly #lengths: Float64Array;

  /** @param city the origin of the coordinates, which must not be far away; by default a city around the first point */
  constructor(waypoints: Waypoints, city?: City) {
    const first = waypoints.points[0];
    if (first === undefined) throw new Error('the route has no points');
    this.city = city ?? cityAround(first.latitudeDegrees, first.longitudeDegrees);
    this.isTimed = waypoints.isTimed;
    // Of successive points with the same time, only the first counts.
    const points = waypoints.points.filter(({ atMs }, index, all) => atMs === null || atMs !== all[index - 1]?.atMs);
    const places = points.map(({ latitudeDegrees, longitudeDegrees }) =>
      placeOf(this.city, latitudeDegrees, longitudeDegrees),
    );
    const count = places.length;
    this.#east = Float64Array.from(places, ({ eastMeters }) => eastMeters);
    this.#north = Float64Array.from(places, ({ northMeters }) => northMeters);
    this.#lengths = new Float64Array(count);
    this.#directions = new Float64Array(count);
    const metersAlong = new Float64Array(count);
    for (let index = 0; index + 1 < count; index++) {
      const east = (this.#east[index + 1] as number) - (this.#east[index] as number);
      const north = (this.#north[index + 1] as number) - (this.#north[index] as number);
      this.#lengths[index] = Math.sqrt(east * east + north * north);
      metersAlong[index + 1] = (metersAlong[index] as number) + (this.#lengths[index] as number);
      const before = this.#directions[index - 1] ?? 0;
      this.#directions[index] = east === 0 && north === 0 ? before : directionOf(east, north);
    }
    this.meters = metersAlong.at(-1) ?? 0;
    this.#progress = waypoints.isTimed
      ? Float64Array.from(points, ({ atMs }) => (atMs ?? 0) - (first.atMs ?? 0))
      : metersAlong;
    this.start = this.#placeAt(0, 0);
    this.end = this.#placeAt(count - 1, 0);
  }

  /** One ride along the path. */
  ride(options: WaypointRide): Route {
    return new WaypointRoute(this, options);
  }

  /** The duration of a ride; a recorded speed takes precedence. */
  durationMs(speedMetersPerSecond: number): Milliseconds {
    const progress = this.#progress.at(-1) ?? 0;
    return this.isTimed ? progress : (progress / speedMetersPerSecond) * 1000;
  }

  /** The motion `elapsed` ms after the start of a ride. */
  at(elapsed: Milliseconds, speedMetersPerSecond: number, isBack: boolean): Motion {
    const totalProgress = this.#progress.at(-1) ?? 0;
    const riddenProgress = Math.min(
      totalProgress,
      Math.max(0, this.isTimed ? elapsed : (elapsed * speedMetersPerSecond) / 1000),
    );
    const progress = isBack ? totalProgress - riddenProgress : riddenProgress;
    const segment = this.#segmentAt(progress);
    const from = this.#progress[segment] as number;
    const span = (this.#progress[segment + 1] as number) - from;
    const speed = this.isTimed ? this.#speedOf(segment) : speedMetersPerSecond;
    const direction = this.#directions[segment] as number;
    return {
      place: this.#placeAt(segment, span === 0 ? 0 : (progress - from) / span),
      speedMetersPerSecond: speed,
      directionDegrees: isBack ? (direction + 180) % 360 : direction,
    };
  }

  /** The recorded stops, as ms since the start of the outward ride. */
  stops(): Stop[] {
    const stops: { startMs: number; endMs: number }[] = [];
    if (!this.isTimed) return stops;
    for (let segment = 0; segment + 1 < this.#progress.length; segment++) {
      if (this.#speedOf(segment) >= STANDSTILL_METERS_PER_SECOND) continue;
      const [startMs, endMs] = [this.#progress[segment] as number, this.#progress[segment + 1] as number];
      const before = stops.at(-1);
      if (before?.endMs === startMs) before.endMs = endMs;
      else stops.push({ startMs, endMs });
    }
    return stops;
  }

  /** The recorded speed of a segment. */
  #speedOf(segment: number): number {
    const span = (this.#progress[segment + 1] as number) - (this.#progress[segment] as number);
    return ((this.#lengths[segment] as number) / span) * 1000;
  }

  /** The place at a fraction (0 to 1) of a segment. */
  #placeAt(segment: number, fraction: number): Place {
    const [east, north] = [this.#east[segment] as number, this.#north[segment] as number];
    return {
      eastMeters: east + ((this.#east[segment + 1] ?? east) - east) * fraction,
      northMeters: north + ((this.#north[segment + 1] ?? north) - north) * fraction,
    };
  }

  /** The last segment that starts at or before `progress`, by binary search. */
  #segmentAt(progress: number): number {
    let low = 0;
    let high = this.#progress.length - 2;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#progress[middle] as number) <= progress) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** One ride along a path. */
class WaypointRoute implements Route {
  readonly startMs: number;
  readonly endMs: number;
  readonly meters: number;
  readonly end: Motion;
  readonly #path: WaypointPath;
  readonly #speedMetersPerSecond: number;
  readonly #isBack: boolean;

  constructor(path: WaypointPath, { startMs, speedMetersPerSecond, isBack = false }: WaypointRide) {
    this.#path = path;
    this.#speedMetersPerSecond = speedMetersPerSecond;
    this.#isBack = isBack;
    this.startMs = startMs;
    this.meters = path.meters;
    this.endMs = startMs + Math.max(1, Math.round(path.durationMs(speedMetersPerSecond)));
    const { directionDegrees } = path.at(this.endMs - startMs, speedMetersPerSecond, isBack);
    this.end = { place: isBack ? path.start : path.end, speedMetersPerSecond: 0, directionDegrees };
  }

  at(atMs: number): Motion {
    if (atMs >= this.endMs) return this.end;
    return this.#path.at(atMs - this.startMs, this.#speedMetersPerSecond, this.#isBack);
  }

  stops(minimumMs: number): Stop[] {
    const durationMs = this.#path.durationMs(this.#speedMetersPerSecond);
    const stopsOfPath = this.#path.stops().filter(({ startMs, endMs }) => endMs - startMs >= minimumMs);
    const ordered = this.#isBack
      ? stopsOfPath
          .reverse()
          .map(({ startMs, endMs }) => ({ startMs: durationMs - endMs, endMs: durationMs - startMs }))
      : stopsOfPath;
    return ordered.map(({ startMs, endMs }) => ({ startMs: this.startMs + startMs, endMs: this.startMs + endMs }));
  }
}
