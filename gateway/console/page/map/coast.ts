/**
 * Coasts and borders for the map, from Natural Earth's data (world-atlas), which the gateway serves itself: the map
 * needs no internet. The coarse data comes first; the finer one when the reader looks closer.
 */
import type { LatLngTuple } from 'leaflet';
import { feature } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import fineAddress from 'world-atlas/countries-50m.json';
import coarseAddress from 'world-atlas/countries-110m.json';

/** From this zoom of the map on, the finer data is worth its size. */
const FINE_FROM_ZOOM = 5;

type Countries = Topology<{ countries: GeometryCollection }>;

/** A country: its polygons, each of one outer ring and its holes. */
export type Country = readonly (readonly LatLngTuple[][])[];

const loaded = new Map<string, Promise<readonly Country[]>>();

/** The countries for a zoom of the map, loaded once. Rejects if the gateway does not answer. */
export function coastFor(zoom: number): Promise<readonly Country[]> {
  const address = zoom < FINE_FROM_ZOOM ? coarseAddress : fineAddress;
  const known = loaded.get(address);
  if (known !== undefined) return known;
  const countries = load(address);
  loaded.set(address, countries);
  // A failed call may be repeated.
  countries.catch(() => loaded.delete(address));
  return countries;
}

async function load(address: string): Promise<readonly Country[]> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`the map's data: the gateway answered ${answer.status}`);
  const topology = (await answer.json()) as Countries;
  return feature(topology, topology.objects.countries).features.map(({ geometry }) => {
    if (geometry.type === 'Polygon') return [geometry.coordinates.map(unwrapped)];
    return geometry.type === 'MultiPolygon' ? geometry.coordinates.map((rings) => rings.map(unwrapped)) : [];
  });
}

/**
 * The points of a ring. Those of a ring that crosses 180° east are moved to its other side, so that the ring stays in
 * one piece instead of drawing a line across the whole map.
 */
function unwrapped(ring: readonly (readonly number[])[]): LatLngTuple[] {
  let turnDegrees = 0;
  let before: number | undefined;
  return ring.map(([longitude = 0, latitude = 0]) => {
    if (before !== undefined && Math.abs(longitude - before) > 180) turnDegrees += longitude < before ? 360 : -360;
    before = longitude;
    return [latitude, longitude + turnDegrees];
  });
}
