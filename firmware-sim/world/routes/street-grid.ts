/**
 * A grid of streets, drawn once from a seed, to which all rides of a city keep. The streets run along the grid's
 * direction and across it, at distances of a block. Places in the grid are metres along and across from the city's
 * middle.
 */
import { Prng } from '../../prng.js';
import { type City, type Place, positionOf, type StreetGrid } from './city.js';
import { type Heading, headingsOf } from './street-legs.js';

/** A place by the axes of a grid, in metres from the middle. */
export interface GridPlace {
  readonly along: number;
  readonly across: number;
}

/** The shortest and the longest block. */
const MIN_BLOCK_METERS = 60;
const MAX_BLOCK_METERS = 220;
/** How far streets go beyond the outskirts: a thief takes a bicycle 3 km away. */
const SUBURB_METERS = 3000;
/** A street is drawn with a point every so often, so that it is straight in every projection of a map. */
const POINT_EVERY_METERS = 1000;

/** The city with a grid of streets. @param seed that of the city: the same gives the same streets */
export function cityWithStreets(city: City, seed: string | number): City {
  const prng = new Prng(seed).fork('streets');
  const reachMeters = city.radiusMeters + SUBURB_METERS;
  return { ...city, streets: { along: drawLines(prng, reachMeters), across: drawLines(prng, reachMeters) } };
}

/** Lines at distances of a block, at least as far as `reachMeters` to both sides. */
function drawLines(prng: Prng, reachMeters: number): number[] {
  const lines = [-reachMeters];
  for (let last = -reachMeters; last < reachMeters; ) {
    last += Math.round(prng.between(MIN_BLOCK_METERS, MAX_BLOCK_METERS));
    lines.push(last);
  }
  return lines;
}

/** The place on the nearest street; the place itself in a city without a grid. */
export function onStreet(city: City, place: Place): Place {
  if (city.streets === undefined) return place;
  const headings = headingsOf(city);
  return placeOnGrid(nearestOnStreet(city.streets, gridPlaceOf(place, headings)), headings);
}

/** The place in a grid. */
export function gridPlaceOf({ eastMeters, northMeters }: Place, headings: readonly Heading[]): GridPlace {
  const [along, across] = headings as readonly [Heading, Heading];
  return {
    along: eastMeters * along.east + northMeters * along.north,
    across: eastMeters * across.east + northMeters * across.north,
  };
}

/** The place of a grid's place. */
export function placeOnGrid({ along, across }: GridPlace, headings: readonly Heading[]): Place {
  const [alongStreets, acrossStreets] = headings as readonly [Heading, Heading];
  return {
    eastMeters: alongStreets.east * along + acrossStreets.east * across,
    northMeters: alongStreets.north * along + acrossStreets.north * across,
  };
}

/** The nearest place on a street, which is a corner outside the grid. */
export function nearestOnStreet(grid: StreetGrid, { along, across }: GridPlace): GridPlace {
  const nearestAlong = grid.along[nearestLine(grid.along, along)] as number;
  const nearestAcross = grid.across[nearestLine(grid.across, across)] as number;
  const isAlong = Math.abs(across - nearestAcross) <= Math.abs(along - nearestAlong);
  return isAlong
    ? { along: within(grid.along, along), across: nearestAcross }
    : { along: nearestAlong, across: within(grid.across, across) };
}

/** The index of the line that is nearest to a place on its axis, by binary search. */
export function nearestLine(lines: readonly number[], meters: number): number {
  let low = 0;
  let high = lines.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (((lines[middle] as number) + (lines[middle + 1] as number)) / 2 < meters) low = middle + 1;
    else high = middle;
  }
  return low;
}

function within(lines: readonly number[], meters: number): number {
  return Math.min(lines.at(-1) as number, Math.max(lines[0] as number, meters));
}

/** The streets as GeoJSON (RFC 7946): a MultiLineString. A city without a grid has none. */
export function streetsGeoJson(city: City) {
  const { along = [], across = [] } = city.streets ?? {};
  const headings = headingsOf(city);
  const pointsOf = (lines: readonly number[], placeAt: (meters: number) => GridPlace): number[][] => {
    const [first = 0, last = 0] = [lines[0], lines.at(-1)];
    const parts = Math.ceil((last - first) / POINT_EVERY_METERS);
    return Array.from({ length: parts + 1 }, (_, part) => {
      const place = placeOnGrid(placeAt(first + ((last - first) * part) / parts), headings);
      const { latitudeDegrees, longitudeDegrees } = positionOf(city, place, 0);
      return [longitudeDegrees, latitudeDegrees];
    });
  };
  const streetsAlong = across.map((line) => pointsOf(along, (meters) => ({ along: meters, across: line })));
  const streetsAcross = along.map((line) => pointsOf(across, (meters) => ({ along: line, across: meters })));
  return { type: 'MultiLineString', coordinates: [...streetsAlong, ...streetsAcross] };
}
