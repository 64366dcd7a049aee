/**
 * Coasts and borders for the map, from Natural Earth's data (world-atlas), which the gateway serves itself: the map
 * needs no internet. The coarse data comes first; the finer one when the reader looks closer.
 */
import type { FeatureCollection, Position } from 'geojson';
import { feature } from 'topojson-client';
import type { GeometryCollection, Topology } from 'topojson-specification';
import fineAddress from 'world-atlas/countries-50m.json';
import coarseAddress from 'world-atlas/countries-110m.json';

/** From this zoom of the map on, the finer data is worth its size. */
const FINE_FROM_ZOOM = 5;

type Countries = Topology<{ countries: GeometryCollection }>;

const loaded = new Map<string, Promise<FeatureCollection>>();

/** The countries for a zoom of the map, loaded once. Rejects if the gateway does not answer. */
export function coastFor(zoom: number): Promise<FeatureCollection> {
  const address = zoom < FINE_FROM_ZOOM ? coarseAddress : fineAddress;
  const known = loaded.get(address);
  if (known !== undefined) return known;
  const countries = load(address);
  loaded.set(address, countries);
  // A failed call may be repeated.
  countries.catch(() => loaded.delete(address));
  return countries;
}

async function load(address: string): Promise<FeatureCollection> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`the map's data: the gateway answered ${answer.status}`);
  const topology = (await answer.json()) as Countries;
  const countries = feature(topology, topology.objects.countries);
  for (const { geometry } of countries.features) {
    const polygons =
      geometry.type === 'Polygon'
        ? [geometry.coordinates]
        : geometry.type === 'MultiPolygon'
          ? geometry.coordinates
          : [];
    for (const rings of polygons) rings.forEach(unwrap);
  }
  return countries;
}

/**
 * Moves the points of a ring that crosses 180° east to its other side, so that the ring stays in one piece instead of
 * drawing a line across the whole map.
 */
function unwrap(ring: Position[]): void {
  let turnDegrees = 0;
  let before: number | undefined;
  for (const point of ring) {
    const [longitude = 0] = point;
    if (before !== undefined && Math.abs(longitude - before) > 180) turnDegrees += longitude < before ? 360 : -360;
    before = longitude;
    point[0] = longitude + turnDegrees;
  }
}
