/** Places in a city, as metres from its middle on a plane, and their conversion to and from positions on the Earth. */
import type { Position } from '../../../proto/wire/ping.js';
import { cosineOf, degreesEast, sineOf } from './angle.js';

/** The streets of a city. The numbers ascend, in metres from the middle. */
export interface StreetGrid {
  /** Where the streets that run across cut the axis along. */
  readonly along: readonly number[];
  /** Where the streets that run along cut the axis across. */
  readonly across: readonly number[];
}

/** The middle of a city, and how its streets are oriented. */
export interface City {
  readonly latitudeDegrees: number;
  readonly longitudeDegrees: number;
  /** The rotation of the street grid from north, degrees clockwise. */
  readonly gridRotationDegrees: number;
  /** The distance from the middle to the outskirts. */
  readonly radiusMeters: number;
  /**
   * The offset of local time from UTC. There is no daylight saving time, so that a seed gives the same run after a
   * country has changed its rules.
   */
  readonly utcOffsetMinutes: number;
  /** The streets to which rides keep. Without them each ride has blocks of its own. */
  readonly streets?: StreetGrid;
}

/** The centre of Amsterdam, approximately. */
export const AMSTERDAM: City = Object.freeze({
  latitudeDegrees: 52.3702,
  longitudeDegrees: 4.8952,
  gridRotationDegrees: 24,
  radiusMeters: 2500,
  utcOffsetMinutes: 60,
});

/** A city like Amsterdam around a point. Its time zone follows from the longitude, to the hour. */
export function cityAround(latitudeDegrees: number, longitudeDegrees: number): City {
  const utcOffsetMinutes = Math.round(longitudeDegrees / 15) * 60;
  return { ...AMSTERDAM, latitudeDegrees, longitudeDegrees, utcOffsetMinutes };
}

/** A place: metres from the middle of the city. */
export interface Place {
  readonly eastMeters: number;
  readonly northMeters: number;
}

/** One degree of latitude on a sphere of the Earth's mean radius. */
export const METERS_PER_DEGREE = 111_195;

/** Converts a place to a position. `uncertaintyMeters` is rounded to whole metres, as in the wire format. */
export function positionOf(city: City, place: Place, uncertaintyMeters: number): Position {
  const northDegrees = place.northMeters / METERS_PER_DEGREE;
  const eastDegrees = place.eastMeters / (METERS_PER_DEGREE * cosineOfLatitude(city.latitudeDegrees));
  return {
    latitudeDegrees: toE7(city.latitudeDegrees + northDegrees),
    // A city may extend across the antimeridian.
    longitudeDegrees: toE7(degreesEast(0, city.longitudeDegrees + eastDegrees)),
    uncertaintyMeters: Math.round(uncertaintyMeters),
  };
}

/** Converts a position to a place. Metres are distorted for positions far away from the city. */
export function placeOf(city: City, latitudeDegrees: number, longitudeDegrees: number): Place {
  const degreesFromMiddle = degreesEast(city.longitudeDegrees, longitudeDegrees);
  return {
    eastMeters: degreesFromMiddle * METERS_PER_DEGREE * cosineOfLatitude(city.latitudeDegrees),
    northMeters: (latitudeDegrees - city.latitudeDegrees) * METERS_PER_DEGREE,
  };
}

/** The latitude asked for last, and its cosine. A fleet has one city. */
const lastLatitude = { degrees: Number.NaN, cosine: Number.NaN };

function cosineOfLatitude(degrees: number): number {
  if (degrees !== lastLatitude.degrees) {
    lastLatitude.degrees = degrees;
    lastLatitude.cosine = cosineOf(degrees);
  }
  return lastLatitude.cosine;
}

/** The place at a distance from another place, in a direction clockwise from north. */
export function placeAlong(from: Place, directionDegrees: number, meters: number): Place {
  return {
    eastMeters: from.eastMeters + sineOf(directionDegrees) * meters,
    northMeters: from.northMeters + cosineOf(directionDegrees) * meters,
  };
}

/** The distance from one place to another along a direction; negative in the opposite direction. */
export function metersAlong(from: Place, to: Place, directionDegrees: number): number {
  const eastMeters = to.eastMeters - from.eastMeters;
  const northMeters = to.northMeters - from.northMeters;
  return eastMeters * sineOf(directionDegrees) + northMeters * cosineOf(directionDegrees);
}

/** Rounds to the resolution of the wire format, so that a decoded position equals the encoded one. */
function toE7(degrees: number): number {
  return Math.round(degrees * 1e7) / 1e7;
}
