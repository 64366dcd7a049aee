/** A way through the streets: blocks and corners, with a stop now and then. Speed and heading follow from it. */
import { Seconds } from '../proto/clock.js';
import { type City, metersAlong, type Place, placeAlong } from './city.js';
import type { Prng } from './prng.js';
import type { Motion, Route, Stop } from './route.js';

/** A straight piece, or a stop. */
interface Leg {
  readonly startMs: number;
  readonly endMs: number;
  readonly from: Place;
  readonly speedMetersPerSecond: number;
  /** Clockwise from north, [0, 360). In a stop, the direction of before. */
  readonly directionDegrees: number;
}

export interface StreetRouteOptions {
  readonly city: City;
  readonly from: Place;
  readonly to: Place;
  readonly startMs: number;
  readonly speedMetersPerSecond: number;
  /** Whether whoever rides waits at a light now and then; they do where it is left out. */
  readonly hasStops?: boolean;
}

/** More corners than a way through a city has. The last piece beyond them is straight. */
const MOST_CORNERS = 120;
const BLOCK_METERS = [60, 220] as const;

/** A way from one place to another that follows the city's streets. */
export class StreetRoute implements Route {
  readonly startMs: number;
  readonly endMs: number;
  readonly end: Motion;
  readonly #legs: readonly Leg[];

  constructor(prng: Prng, options: StreetRouteOptions) {
    const legs = legsOf(prng, options);
    const last = legs.at(-1);
    this.#legs = legs;
    this.startMs = options.startMs;
    this.endMs = last?.endMs ?? options.startMs;
    const directionDegrees = last?.directionDegrees ?? 0;
    this.end = { place: options.to, speedMetersPerSecond: 0, directionDegrees };
  }

  at(atMs: number): Motion {
    const leg = this.#legAt(atMs);
    if (leg === undefined || atMs >= this.endMs) return this.end;
    const meters = (leg.speedMetersPerSecond * Math.max(0, atMs - leg.startMs)) / 1000;
    const { speedMetersPerSecond, directionDegrees } = leg;
    return { place: placeAlong(leg.from, directionDegrees, meters), speedMetersPerSecond, directionDegrees };
  }

  stops(atLeastMs: number): Stop[] {
    return this.#legs.filter((leg) => leg.speedMetersPerSecond === 0 && leg.endMs - leg.startMs >= atLeastMs);
  }

  /** The last leg that begins at or before `atMs`, by halving. */
  #legAt(atMs: number): Leg | undefined {
    let low = 0;
    let high = this.#legs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#legs[middle]?.startMs ?? 0) <= atMs) low = middle;
      else high = middle - 1;
    }
    return this.#legs[low];
  }
}

function legsOf(prng: Prng, options: StreetRouteOptions): Leg[] {
  const { city, to, hasStops = true } = options;
  const legs: Leg[] = [];
  let place = options.from;
  let atMs = options.startMs;
  const ride = (directionDegrees: number, meters: number): void => {
    const speedMetersPerSecond = options.speedMetersPerSecond * prng.between(0.8, 1.2);
    const endMs = atMs + Math.max(1, Math.round((meters / speedMetersPerSecond) * 1000));
    legs.push({ startMs: atMs, endMs, from: place, speedMetersPerSecond, directionDegrees });
    place = placeAlong(place, directionDegrees, meters);
    atMs = endMs;
  };
  for (let corner = 0; corner < MOST_CORNERS; corner++) {
    const along = metersAlong(place, to, city.turnedDegrees);
    const across = metersAlong(place, to, city.turnedDegrees + 90);
    if (Math.abs(along) < 1 && Math.abs(across) < 1) break;
    // Towards the goal, mostly by the longer side; now and then a block around something.
    const isAlong = prng.chance(Math.abs(along) / (Math.abs(along) + Math.abs(across)));
    const isDetour = corner < MOST_CORNERS / 4 && prng.chance(0.08);
    const left = isAlong ? along : across;
    const block = prng.between(...BLOCK_METERS);
    const meters = isDetour ? block : Math.min(Math.abs(left), block);
    const isBack = left < 0 !== isDetour;
    ride((city.turnedDegrees + (isAlong ? 0 : 90) + (isBack ? 180 : 0) + 360) % 360, Math.max(meters, 1));
    if (prng.chance(0.12) && hasStops) {
      const directionDegrees = legs.at(-1)?.directionDegrees ?? 0;
      const endMs = atMs + Math.round(prng.between(Seconds(5), Seconds(45)));
      legs.push({ startMs: atMs, endMs, from: place, speedMetersPerSecond: 0, directionDegrees });
      atMs = endMs;
    }
  }
  return legs;
}
