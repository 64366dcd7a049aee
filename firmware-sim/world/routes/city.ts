/** Places in a city as metres from its middle, which is all the geometry that a bicycle needs. */
import type { Position } from '../../../proto/wire/ping.js';
import { cosineOf, degreesEast, sineOf } from './angle.js';

/** The middle of a city, and how its streets lie. */
export interface City {
  readonly latitudeDegrees: number;
  readonly longitudeDegrees: number;
  /** By how much the streets are turned against north and east, degrees clockwise. */
  readonly turnedDegrees: number;
  /** From the middle to the outskirts. */
  readonly radiusMeters: number;
  /** What the clocks there show against UTC. They stay so all year: a seed does not depend on a law. */
  readonly utcOffsetMinutes: number;
}

/** The centre of Amsterdam, by and large. */
export const AMSTERDAM: City = Object.freeze({
  latitudeDegrees: 52.3702,
  longitudeDegrees: 4.8952,
  turnedDegrees: 24,
  radiusMeters: 2500,
  utcOffsetMinutes: 60,
});

/** Streets as those of Amsterdam, around a point. The clocks there go by the sun, to the hour. */
export function cityAround(latitudeDegrees: number, longitudeDegrees: number): City {
  const utcOffsetMinutes = Math.round(longitudeDegrees / 15) * 60;
  return { ...AMSTERDAM, latitudeDegrees, longitudeDegrees, utcOffsetMinutes };
}

/** Metres from the middle of the city. */
export interface Place {
  readonly eastMeters: number;
  readonly northMeters: number;
}

/** One degree of latitude on a sphere of the Earth's mean radius. */
export const METERS_PER_DEGREE = 111_195;

/** A place as a position. `uncertaintyMeters` is rounded to the whole metres that the wire carries. */
export function positionOf(city: City, place: Place, uncertaintyMeters: number): Position {
  const northDegrees = place.northMeters / METERS_PER_DEGREE;
  const eastDegrees = place.eastMeters / (METERS_PER_DEGREE * cosineOf(city.latitudeDegrees));
  return {
    latitudeDegrees: toE7(city.latitudeDegrees + northDegrees),
    // A city may lie across the line where the longitudes meet.
    longitudeDegrees: toE7(degreesEast(0, city.longitudeDegrees + eastDegrees)),
    uncertaintyMeters: Math.round(uncertaintyMeters),
  };
}

/** The other way round. Far away from the city its metres are no longer those of the place. */
export function placeOf(city: City, latitudeDegrees: number, longitudeDegrees: number): Place {
  const east = degreesEast(city.longitudeDegrees, longitudeDegrees);
  return {
    eastMeters: east * METERS_PER_DEGREE * cosineOf(city.latitudeDegrees),
    northMeters: (latitudeDegrees - city.latitudeDegrees) * METERS_PER_DEGREE,
  };
}

/** The place that lies `meters` from another, `directionDegrees` clockwise from north. */
export function placeAlong(from: Place, directionDegrees: number, meters: number): Place {
  return {
    eastMeters: from.eastMeters + sineOf(directionDegrees) * meters,
    northMeters: from.northMeters + cosineOf(directionDegrees) * meters,
  };
}

/** How far it is from one place to another along a direction; negative where it is the other way. */
export function metersAlong(from: Place, to: Place, directionDegrees: number): number {
  const east = to.eastMeters - from.eastMeters;
  const north = to.northMeters - from.northMeters;
  return east * sineOf(directionDegrees) + north * cosineOf(directionDegrees);
}

/** What the wire carries: a lock that reads its own ping back reads the same. */
function toE7(degrees: number): number {
  return Math.round(degrees * 1e7) / 1e7;
}
