/** Distances on the globe, for the rules about positions. Pure. */
import type { Position } from '../../../wire/ping.js';

/** The mean radius of the Earth. */
const EARTH_METERS = 6_371_008.8;
const RADIANS = Math.PI / 180;

/** The great-circle distance between two positions, in metres, by the haversine formula. */
export function metersBetween(
  from: Pick<Position, 'latitudeDegrees' | 'longitudeDegrees'>,
  to: Pick<Position, 'latitudeDegrees' | 'longitudeDegrees'>,
): number {
  const north = Math.sin(((to.latitudeDegrees - from.latitudeDegrees) * RADIANS) / 2);
  const east = Math.sin(((to.longitudeDegrees - from.longitudeDegrees) * RADIANS) / 2);
  const cosines = Math.cos(from.latitudeDegrees * RADIANS) * Math.cos(to.latitudeDegrees * RADIANS);
  // Rounding may make the root of two opposite points exceed 1, where asin is NaN.
  return 2 * EARTH_METERS * Math.asin(Math.min(1, Math.sqrt(north * north + cosines * east * east)));
}
