/**
 * A route that somebody takes at a certain time: where they are at each moment, and how they move. Two kinds: through
 * the streets of a city (street-route.ts), and along the points of a file (waypoint-route.ts).
 */
import type { Place } from './city.js';

/** Position and movement at a moment. */
export interface Motion {
  readonly place: Place;
  readonly speedMetersPerSecond: number;
  /** Clockwise from north, [0, 360). At a standstill, the last direction. */
  readonly directionDegrees: number;
}

/** A period in which the rider stands still, at a light or a crossing. Ms since the epoch. */
export interface Stop {
  readonly startMs: number;
  readonly endMs: number;
}

export interface Route {
  /** Ms since the epoch. */
  readonly startMs: number;
  readonly endMs: number;
  /** Its length. */
  readonly meters: number;
  /** The end of the route, at a standstill. */
  readonly end: Motion;
  /** The motion at `atMs`; outside the route's time, at its nearer end. */
  at(atMs: number): Motion;
  /** The stops of at least this duration, in order. */
  stops(atLeastMs: number): Stop[];
}
