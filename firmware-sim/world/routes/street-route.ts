/**
 * A random route through the streets of a city: blocks and corners, with occasional stops. It is generated once, in the
 * constructor; later calls draw no random numbers. In a city with a grid of streets the route keeps to them
 * (grid-legs.ts); otherwise each route has blocks of its own, along the directions of the city's streets.
 */
import { Seconds } from '../../../proto/clock.js';
import type { Prng } from '../../prng.js';
import { legsOnGrid } from './grid-legs.js';
import type { Motion, Route, Stop } from './route.js';
import {
  addLeg,
  DETOUR_PROBABILITY,
  type DrawnLegs,
  type Heading,
  headingsOf,
  LEG_OFFSET,
  MAX_CORNERS,
  NUMBERS_PER_LEG,
  newLegs,
  STOP_PROBABILITY,
  type StreetRouteOptions,
} from './street-legs.js';

/** The shortest and the longest block. */
const MIN_BLOCK_METERS = 60;
const MAX_BLOCK_METERS = 220;

/** A route from one place to another along the city's streets. */
export class StreetRoute implements Route {
  readonly startMs: number;
  readonly endMs: number;
  readonly meters: number;
  readonly end: Motion;
  readonly #legs: readonly number[];
  readonly #headings: readonly Heading[];

  constructor(prng: Prng, options: StreetRouteOptions) {
    const headings = headingsOf(options.city);
    const onGrid = legsOnGrid(prng, options, headings);
    const { legs, endMs, meters } = onGrid ?? legsOf(prng, options, headings);
    this.#legs = legs;
    this.#headings = headings;
    this.startMs = options.startMs;
    this.endMs = endMs;
    this.meters = meters;
    // A negative index: the heading of the last leg.
    const directionDegrees = headings[legs.at(LEG_OFFSET.heading - NUMBERS_PER_LEG) ?? 0]?.directionDegrees ?? 0;
    this.end = {
      place: onGrid?.to ?? options.to,
      speedMetersPerSecond: 0,
      directionDegrees: legs.length === 0 ? 0 : directionDegrees,
    };
  }

  at(atMs: number): Motion {
    if (this.#legs.length === 0 || atMs >= this.endMs) return this.end;
    const leg = this.#legAt(atMs);
    const speedMetersPerSecond = this.#legValue(leg, LEG_OFFSET.speed);
    const meters = (speedMetersPerSecond * Math.max(0, atMs - this.#legValue(leg, LEG_OFFSET.startMs))) / 1000;
    const heading = this.#headings[this.#legValue(leg, LEG_OFFSET.heading)] as Heading;
    return {
      place: {
        eastMeters: this.#legValue(leg, LEG_OFFSET.east) + heading.east * meters,
        northMeters: this.#legValue(leg, LEG_OFFSET.north) + heading.north * meters,
      },
      speedMetersPerSecond,
      directionDegrees: heading.directionDegrees,
    };
  }

  stops(minimumMs: number): Stop[] {
    const stops: Stop[] = [];
    const count = this.#legs.length / NUMBERS_PER_LEG;
    for (let leg = 0; leg < count; leg++) {
      if (this.#legValue(leg, LEG_OFFSET.speed) !== 0) continue;
      const startMs = this.#legValue(leg, LEG_OFFSET.startMs);
      const endMs = leg + 1 < count ? this.#legValue(leg + 1, LEG_OFFSET.startMs) : this.endMs;
      if (endMs - startMs >= minimumMs) stops.push({ startMs, endMs });
    }
    return stops;
  }

  /** One number of a leg. @param member its offset in {@link LEG_OFFSET} */
  #legValue(leg: number, member: number): number {
    return this.#legs[leg * NUMBERS_PER_LEG + member] ?? 0;
  }

  /** The last leg that starts at or before `atMs`, by binary search. */
  #legAt(atMs: number): number {
    let low = 0;
    let high = this.#legs.length / NUMBERS_PER_LEG - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#legValue(middle, LEG_OFFSET.startMs) <= atMs) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Draws the legs of a route, corner by corner. */
function legsOf(prng: Prng, options: StreetRouteOptions, headings: readonly Heading[]): DrawnLegs {
  const { to, hasStops = true } = options;
  const alongStreets = headings[0] as Heading;
  const acrossStreets = headings[1] as Heading;
  let { eastMeters: east, northMeters: north } = options.from;
  let atMs = options.startMs;
  let riddenMeters = 0;
  let length = 0;
  for (let corner = 0; corner < MAX_CORNERS; corner++) {
    const toEast = to.eastMeters - east;
    const toNorth = to.northMeters - north;
    const metersAlong = toEast * alongStreets.east + toNorth * alongStreets.north;
    const metersAcross = toEast * acrossStreets.east + toNorth * acrossStreets.north;
    // Within a metre, the destination is reached.
    if (Math.abs(metersAlong) < 1 && Math.abs(metersAcross) < 1) break;
    // The leg leads towards the destination, mostly along the longer side. Sometimes it is a detour, away from the
    // destination; only near the start, so that enough corners remain to get there.
    const isAlong = prng.chance(Math.abs(metersAlong) / (Math.abs(metersAlong) + Math.abs(metersAcross)));
    const isDetour = corner < MAX_CORNERS / 4 && prng.chance(DETOUR_PROBABILITY);
    const remainingMeters = isAlong ? metersAlong : metersAcross;
    const blockMeters = prng.between(MIN_BLOCK_METERS, MAX_BLOCK_METERS);
    const meters = Math.max(isDetour ? blockMeters : Math.min(Math.abs(remainingMeters), blockMeters), 1);
    const isBack = remainingMeters < 0 !== isDetour;
    const speedMetersPerSecond = options.speedMetersPerSecond * prng.between(0.8, 1.2);
    const headingIndex = (isAlong ? 0 : 1) + (isBack ? 2 : 0);
    const heading = headings[headingIndex] as Heading;
    length = addLeg(length, atMs, east, north, speedMetersPerSecond, headingIndex);
    east += heading.east * meters;
    north += heading.north * meters;
    riddenMeters += meters;
    atMs += Math.max(1, Math.round((meters / speedMetersPerSecond) * 1000));
    // Drawn in any case, so that the same seed leads around the same corners with and without stops.
    if (prng.chance(STOP_PROBABILITY) && hasStops) {
      length = addLeg(length, atMs, east, north, 0, headingIndex);
      atMs += Math.round(prng.between(Seconds(5), Seconds(45)));
    }
  }
  return { legs: newLegs.slice(0, length), endMs: atMs, meters: riddenMeters };
}
