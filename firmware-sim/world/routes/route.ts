/**
 * A way that somebody takes at a certain time: where they are at each moment, and how they move. Its kinds: through the
 * streets of a city (street-route.ts), and along the points of a file (waypoint-route.ts).
 */
import type { Place } from './city.js';

/** Where something is at a moment, and how it moves. */
export interface Motion {
  readonly place: Place;
  readonly speedMetersPerSecond: number;
  /** Clockwise from north, [0, 360). Of one who stands, the direction of before. */
  readonly directionDegrees: number;
}

/** A stretch of time in which a rider stands, at a light or a crossing. Ms since the epoch. */
export interface Stop {
  readonly startMs: number;
  readonly endMs: number;
}

export interface Route {
  /** Ms since the epoch. */
  readonly startMs: number;
  readonly endMs: number;
  /** How far it is. */
  readonly meters: number;
  /** Where it ends, standing. */
  readonly end: Motion;
  /** Where one is at `atMs`; before and after the way, at its ends. */
  at(atMs: number): Motion;
  /** The stops that last long enough for a motion sensor to notice, in order. */
  stops(atLeastMs: number): Stop[];
}
