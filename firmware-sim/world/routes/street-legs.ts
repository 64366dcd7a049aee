/** The legs of a route through streets, as a list of numbers, and the directions in which they lead. */
import { cosineOf, sineOf } from './angle.js';
import type { City, Place } from './city.js';

/** From where to where a route leads, when it starts, and how fast the rider is on average. */
export interface StreetRouteOptions {
  readonly city: City;
  readonly from: Place;
  readonly to: Place;
  readonly startMs: number;
  readonly speedMetersPerSecond: number;
  /** Whether the rider stops at lights now and then. True by default. */
  readonly hasStops?: boolean;
}

/** Maximum number of corners. A longer route jumps from the last corner to the destination. */
export const MAX_CORNERS = 120;
/** How often a rider makes a detour, and how often a rider stops at a corner. */
export const DETOUR_PROBABILITY = 0.08;
export const STOP_PROBABILITY = 0.12;

/** The direction of a street. Its sine (east) and cosine (north) are stored, to compute them only once. */
export interface Heading {
  /** Clockwise from north, [0, 360). */
  readonly directionDegrees: number;
  readonly east: number;
  readonly north: number;
}

/**
 * A leg is a straight segment or a stop. All legs of a route are in one list of numbers, {@link NUMBERS_PER_LEG} for
 * each leg: when and where it starts, its speed, and the index of its heading (for a stop, that of the previous leg).
 * This object has the offset of each number. A route is in memory as long as its bicycle is parked at the end. With an
 * object per leg, garbage collection would dominate a large fleet.
 */
export const LEG_OFFSET = { startMs: 0, east: 1, north: 2, speed: 3, heading: 4 } as const;
export const NUMBERS_PER_LEG = 5;
/**
 * The legs of the route that is being generated; each corner adds a leg and at most one stop. One list serves all
 * routes: a list that grows is copied several times.
 */
export const newLegs = new Array<number>(2 * MAX_CORNERS * NUMBERS_PER_LEG).fill(0);

/** The legs of a route that was drawn. */
export interface DrawnLegs {
  readonly legs: readonly number[];
  readonly endMs: number;
  readonly meters: number;
}

/** The headings of the grid whose rotation was asked for last. A fleet has one city. */
let lastHeadings: { readonly rotationDegrees: number; readonly headings: readonly Heading[] } | undefined;

/** The four headings of the grid: along the streets (0), across (1), back along (2), back across (3). */
export function headingsOf({ gridRotationDegrees }: City): readonly Heading[] {
  if (lastHeadings?.rotationDegrees === gridRotationDegrees) return lastHeadings.headings;
  const headings = [0, 90, 180, 270].map((quarterDegrees) => {
    const directionDegrees = (gridRotationDegrees + quarterDegrees + 360) % 360;
    return { directionDegrees, east: sineOf(directionDegrees), north: cosineOf(directionDegrees) };
  });
  lastHeadings = { rotationDegrees: gridRotationDegrees, headings };
  return headings;
}

/** Writes a leg at this place of {@link newLegs}. Returns the place after it. */
export function addLeg(
  place: number,
  startMs: number,
  east: number,
  north: number,
  speed: number,
  heading: number,
): number {
  newLegs[place + LEG_OFFSET.startMs] = startMs;
  newLegs[place + LEG_OFFSET.east] = east;
  newLegs[place + LEG_OFFSET.north] = north;
  newLegs[place + LEG_OFFSET.speed] = speed;
  newLegs[place + LEG_OFFSET.heading] = heading;
  return place + NUMBERS_PER_LEG;
}
