/**
 * The interface of a route: a path that a rider takes at a certain time, with the place and movement at each moment.
 * There are two kinds: through the streets of a city (street-route.ts), and along the points of a file
 * (waypoint-route.ts).
 */
import type { Place } from './city.js';

/** The rider's place and movement at a moment. */
export interface Motion {
  readonly place: Place;
  readonly speedMetersPerSecond: number;
  /** Clockwise from north, [0, 360). At a standstill, the last direction. */
  readonly directionDegrees: number;
}

/** A period in which the rider stands still, such as at a traffic light. Ms since the epoch. */
export interface Stop {
  readonly startMs: number;
  readonly endMs: number;
}

/** See the top of this file. */
export interface Route {
  /** Ms since the epoch. */
  readonly startMs: number;
  readonly endMs: number;
  /** The length of the route. */
  readonly meters: number;
  /** The end of the route, at a standstill. */
  readonly end: Motion;
  /** The motion at `atMs`; before the start that of the start, after the end that of the end. */
  at(atMs: number): Motion;
  /** The stops that last at least this long, in order. */
  stops(minimumMs: number): Stop[];
}
