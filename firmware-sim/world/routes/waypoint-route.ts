/**
 * A way along the points of a file, there or back: as fast as the one who recorded it was, where the file has times,
 * and at one speed where it has none.
 */
import type { Milliseconds } from '../../../proto/clock.js';
import { directionOf } from './angle.js';
import { type City, cityAround, type Place, placeOf } from './city.js';
import type { Motion, Route, Stop } from './route.js';
import type { Waypoints } from './waypoints.js';

/** Slower than anybody rides or walks: what is left of a recorded speed while its receiver wanders about. */
const STANDING_METERS_PER_SECOND = 0.4;

export interface WaypointRide {
  readonly startMs: number;
  /** How fast, where the file has no times. */
  readonly speedMetersPerSecond: number;
  /** From the last point to the first. */
  readonly isBack?: boolean;
}

/** The points of a file as places in a city: made once, ridden as often as one likes. */
export class WaypointPath {
  readonly city: City;
  readonly start: Place;
  readonly end: Place;
  /** Its length. */
  readonly meters: number;
  readonly isTimed: boolean;
  readonly #east: Float64Array;
  readonly #north: Float64Array;
  /** What tells how far one has come, for each point: ms since the first where there are times, else metres. */
  readonly #marks: Float64Array;
  /** Of the piece that begins at each point: its direction (that of before, where one stands) and its metres. */
  readonly #directions: Float64Array;
  readonly #lengths: Float64Array;

  /** @param city whose middle the places are counted from: not far away; around the first point if it is left out */
  constructor(waypoints: Waypoints, city?: City) {
    const first = waypoints.points[0];
    if (first === undefined) throw new Error('a route has points');
    this.city = city ?? cityAround(first.latitudeDegrees, first.longitudeDegrees);
    this.isTimed = waypoints.isTimed;
    // Of points with the same time the first counts: nobody is in two places.
    const points = waypoints.points.filter(({ atMs }, index, all) => atMs === null || atMs !== all[index - 1]?.atMs);
    const places = points.map(({ latitudeDegrees, longitudeDegrees }) =>
      placeOf(this.city, latitudeDegrees, longitudeDegrees),
    );
    const count = places.length;
    this.#east = Float64Array.from(places, ({ eastMeters }) => eastMeters);
    this.#north = Float64Array.from(places, ({ northMeters }) => northMeters);
    this.#lengths = new Float64Array(count);
    this.#directions = new Float64Array(count);
    const along = new Float64Array(count);
    for (let index = 0; index + 1 < count; index++) {
      const east = (this.#east[index + 1] as number) - (this.#east[index] as number);
      const north = (this.#north[index + 1] as number) - (this.#north[index] as number);
      this.#lengths[index] = Math.sqrt(east * east + north * north);
      along[index + 1] = (along[index] as number) + (this.#lengths[index] as number);
      const before = this.#directions[index - 1] ?? 0;
      this.#directions[index] = east === 0 && north === 0 ? before : directionOf(east, north);
    }
    this.meters = along.at(-1) ?? 0;
    this.#marks = waypoints.isTimed ? Float64Array.from(points, ({ atMs }) => (atMs ?? 0) - (first.atMs ?? 0)) : along;
    this.start = this.#placeAt(0, 0);
    this.end = this.#placeAt(count - 1, 0);
  }

  /** One ride along it. */
  ride(options: WaypointRide): Route {
    return new WaypointRoute(this, options);
  }

  /** How long a ride takes. */
  lasts(speedMetersPerSecond: number): Milliseconds {
    const mark = this.#marks.at(-1) ?? 0;
    return this.isTimed ? mark : (mark / speedMetersPerSecond) * 1000;
  }

  /** Where one is `elapsed` ms after the start, and how one moves. */
  at(elapsed: Milliseconds, speedMetersPerSecond: number, isBack: boolean): Motion {
    const whole = this.#marks.at(-1) ?? 0;
    const ridden = Math.min(whole, Math.max(0, this.isTimed ? elapsed : (elapsed * speedMetersPerSecond) / 1000));
    const mark = isBack ? whole - ridden : ridden;
    const piece = this.#pieceAt(mark);
    const from = this.#marks[piece] as number;
    const span = (this.#marks[piece + 1] as number) - from;
    const speed = this.isTimed ? this.#speedOf(piece) : speedMetersPerSecond;
    const direction = this.#directions[piece] as number;
    return {
      place: this.#placeAt(piece, span === 0 ? 0 : (mark - from) / span),
      speedMetersPerSecond: speed,
      directionDegrees: isBack ? (direction + 180) % 360 : direction,
    };
  }

  /** The stops, as ms since the start of the way there. */
  stops(): Stop[] {
    const stops: { startMs: number; endMs: number }[] = [];
    if (!this.isTimed) return stops;
    for (let piece = 0; piece + 1 < this.#marks.length; piece++) {
      if (this.#speedOf(piece) >= STANDING_METERS_PER_SECOND) continue;
      const [startMs, endMs] = [this.#marks[piece] as number, this.#marks[piece + 1] as number];
      const before = stops.at(-1);
      if (before?.endMs === startMs) before.endMs = endMs;
      else stops.push({ startMs, endMs });
    }
    return stops;
  }

  /** Of a recorded piece. */
  #speedOf(piece: number): number {
    const span = (this.#marks[piece + 1] as number) - (this.#marks[piece] as number);
    return ((this.#lengths[piece] as number) / span) * 1000;
  }

  #placeAt(piece: number, share: number): Place {
    const [east, north] = [this.#east[piece] as number, this.#north[piece] as number];
    return {
      eastMeters: east + ((this.#east[piece + 1] ?? east) - east) * share,
      northMeters: north + ((this.#north[piece + 1] ?? north) - north) * share,
    };
  }

  /** The last piece that begins at or before `mark`, by halving. */
  #pieceAt(mark: number): number {
    let low = 0;
    let high = this.#marks.length - 2;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#marks[middle] as number) <= mark) low = middle;
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
  readonly #speed: number;
  readonly #isBack: boolean;

  constructor(path: WaypointPath, { startMs, speedMetersPerSecond, isBack = false }: WaypointRide) {
    this.#path = path;
    this.#speed = speedMetersPerSecond;
    this.#isBack = isBack;
    this.startMs = startMs;
    this.meters = path.meters;
    this.endMs = startMs + Math.max(1, Math.round(path.lasts(speedMetersPerSecond)));
    const { directionDegrees } = path.at(this.endMs - startMs, speedMetersPerSecond, isBack);
    this.end = { place: isBack ? path.start : path.end, speedMetersPerSecond: 0, directionDegrees };
  }

  at(atMs: number): Motion {
    if (atMs >= this.endMs) return this.end;
    return this.#path.at(atMs - this.startMs, this.#speed, this.#isBack);
  }

  stops(atLeastMs: number): Stop[] {
    const lasts = this.#path.lasts(this.#speed);
    const there = this.#path.stops().filter(({ startMs, endMs }) => endMs - startMs >= atLeastMs);
    const ordered = this.#isBack
      ? there.reverse().map(({ startMs, endMs }) => ({ startMs: lasts - endMs, endMs: lasts - startMs }))
      : there;
    return ordered.map(({ startMs, endMs }) => ({ startMs: this.startMs + startMs, endMs: this.startMs + endMs }));
  }
}
