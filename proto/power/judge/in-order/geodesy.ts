/** Distances on the globe, for the rules about positions. */
import type { Position } from '../../../wire/ping.js';

/** The mean radius of the Earth. */
const EARTH_METERS = 6_371_008.8;
const RADIANS = Math.PI / 180;

/** The great-circle distance between two positions, in metres. */
export function metersBetween(
  one: Pick<Position, 'latitudeDegrees' | 'longitudeDegrees'>,
  other: Pick<Position, 'latitudeDegrees' | 'longitudeDegrees'>,
): number {
  const north = Math.sin(((other.latitudeDegrees - one.latitudeDegrees) * RADIANS) / 2);
  const east = Math.sin(((other.longitudeDegrees - one.longitudeDegrees) * RADIANS) / 2);
  const cosines = Math.cos(one.latitudeDegrees * RADIANS) * Math.cos(other.latitudeDegrees * RADIANS);
  return 2 * EARTH_METERS * Math.asin(Math.min(1, Math.sqrt(north * north + cosines * east * east)));
}
