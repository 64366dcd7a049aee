/** Distances on a spherical Earth by the haversine formula, independent of the code under test. */

/** Latitude and longitude, degrees. */
export type LatLon = readonly [number, number];

/** The mean radius of the Earth. */
const RADIUS_METERS = 6_371_008.8;
const radians = (degrees: number): number => (degrees * Math.PI) / 180;

/** Metres between two points. */
export function metersApart([lat1, lon1]: LatLon, [lat2, lon2]: LatLon): number {
  const haversine = (from: number, to: number): number => Math.sin(radians(to - from) / 2) ** 2;
  const central = haversine(lat1, lat2) + Math.cos(radians(lat1)) * Math.cos(radians(lat2)) * haversine(lon1, lon2);
  return 2 * RADIUS_METERS * Math.asin(Math.sqrt(central));
}
