/**
 * Draws the legs of a route that keeps to a grid of streets: from the start along its street to a corner, from
 * corner to corner, and along the destination's street to the destination.
 */
import { Seconds } from '../../../proto/clock.js';
import type { Prng } from '../../prng.js';
import type { Place, StreetGrid } from './city.js';
import { type GridPlace, gridPlaceOf, nearestLine, nearestOnStreet, placeOnGrid } from './street-grid.js';
import {
  addLeg,
  DETOUR_PROBABILITY,
  type DrawnLegs,
  type Heading,
  MAX_CORNERS,
  newLegs,
  STOP_PROBABILITY,
  type StreetRouteOptions,
} from './street-legs.js';

/** Places closer than this on one axis are at the same line: computing a place changes its last digits. */
const SAME_METERS = 0.01;

/** One of the two axes of a grid. */
type Axis = keyof GridPlace;

/** A leg of a ride: along which axis, and to where on it. */
interface Step {
  readonly axis: Axis;
  readonly to: number;
}

/**
 * The legs of a route, and the place where it ends; undefined if the city has no grid of streets. Start and end that
 * are on no street are moved to the nearest one.
 */
export function legsOnGrid(
  prng: Prng,
  { city, from, to, startMs, speedMetersPerSecond, hasStops = true }: StreetRouteOptions,
  headings: readonly Heading[],
): (DrawnLegs & { readonly to: Place }) | undefined {
  const { streets } = city;
  if (streets === undefined) return undefined;
  const end = nearestOnStreet(streets, gridPlaceOf(to, headings));
  let here = nearestOnStreet(streets, gridPlaceOf(from, headings));
  let atMs = startMs;
  let riddenMeters = 0;
  let length = 0;
  for (let corner = 0; corner < MAX_CORNERS; corner++) {
    const step = nextStep(prng, streets, here, end, corner);
    if (step === undefined) break;
    const metersAhead = step.to - here[step.axis];
    const headingIndex = (step.axis === 'along' ? 0 : 1) + (metersAhead < 0 ? 2 : 0);
    const speed = speedMetersPerSecond * prng.between(0.8, 1.2);
    const start = placeOnGrid(here, headings);
    length = addLeg(length, atMs, start.eastMeters, start.northMeters, speed, headingIndex);
    here = { ...here, [step.axis]: step.to };
    riddenMeters += Math.abs(metersAhead);
    atMs += Math.max(1, Math.round((Math.abs(metersAhead) / speed) * 1000));
    // Drawn in any case, so that the same seed leads around the same corners with and without stops.
    if (prng.chance(STOP_PROBABILITY) && hasStops) {
      const stop = placeOnGrid(here, headings);
      length = addLeg(length, atMs, stop.eastMeters, stop.northMeters, 0, headingIndex);
      atMs += Math.round(prng.between(Seconds(5), Seconds(45)));
    }
  }
  return { legs: newLegs.slice(0, length), endMs: atMs, meters: riddenMeters, to: placeOnGrid(end, headings) };
}

/** The next step from a place on a street towards another one; undefined if it is reached. */
function nextStep(prng: Prng, grid: StreetGrid, here: GridPlace, end: GridPlace, corner: number): Step | undefined {
  const ahead = { along: end.along - here.along, across: end.across - here.across };
  const isThere = { along: Math.abs(ahead.along) < SAME_METERS, across: Math.abs(ahead.across) < SAME_METERS };
  if (isThere.along && isThere.across) return undefined;
  // An axis on which the rider can move: the street that runs along it passes here.
  const axes: readonly Axis[] = (['along', 'across'] as const).filter((axis) => isOnStreet(grid, here, axis));
  const steps = axes.map((axis) => stepTowards(grid, here, end, axis, isThere[other(axis)]));
  const useful = steps.filter((step) => step !== undefined);
  const [first, second] = useful;
  const share = Math.abs(ahead.along) / (Math.abs(ahead.along) + Math.abs(ahead.across));
  const isAlong = prng.chance(share);
  // Only near the start, so that enough corners remain to get to the end.
  const isDetour = corner < MAX_CORNERS / 4 && prng.chance(DETOUR_PROBABILITY);
  const chosen = second === undefined || isAlong ? first : second;
  const away = isDetour && axes.length === 2 ? stepAway(grid, here, end, isAlong ? 'along' : 'across') : undefined;
  // Where no step leads nearer, the rider is inside a block, and its nearer corner leads out.
  return away ?? chosen ?? toCorner(grid, here, end, axes[0] ?? 'along');
}

/** Whether the street that runs along an axis passes a place: whether the place is at a line of the other axis. */
function isOnStreet(grid: StreetGrid, here: GridPlace, axis: Axis): boolean {
  const across = other(axis);
  const line = grid[across][nearestLine(grid[across], here[across])] as number;
  return Math.abs(line - here[across]) < SAME_METERS;
}

/**
 * A step along an axis that does not go past the end: to the next corner, or on the end's own street to the end;
 * undefined if the end is less than a block ahead on another street.
 */
function stepTowards(
  grid: StreetGrid,
  here: GridPlace,
  end: GridPlace,
  axis: Axis,
  isEndsStreet: boolean,
): Step | undefined {
  const metersAhead = end[axis] - here[axis];
  if (Math.abs(metersAhead) < SAME_METERS) return undefined;
  const next = nextCorner(grid[axis], here[axis], Math.sign(metersAhead));
  const isPast = next === undefined || Math.abs(next - here[axis]) > Math.abs(metersAhead) + SAME_METERS;
  if (!isPast) return { axis, to: next };
  return isEndsStreet ? { axis, to: end[axis] } : undefined;
}

/** A step of a block away from the end. */
function stepAway(grid: StreetGrid, here: GridPlace, end: GridPlace, axis: Axis): Step | undefined {
  const next = nextCorner(grid[axis], here[axis], end[axis] > here[axis] ? -1 : 1);
  return next === undefined ? undefined : { axis, to: next };
}

/** A step to the corner beside a place inside a block, past which the end is. */
function toCorner(grid: StreetGrid, here: GridPlace, end: GridPlace, axis: Axis): Step | undefined {
  const sign = end[axis] >= here[axis] ? 1 : -1;
  const next = nextCorner(grid[axis], here[axis], sign) ?? nextCorner(grid[axis], here[axis], -sign);
  return next === undefined ? undefined : { axis, to: next };
}

/** The corner that comes next in a direction (1 or −1); undefined at the edge of the grid. */
function nextCorner(lines: readonly number[], meters: number, sign: number): number | undefined {
  const nearest = nearestLine(lines, meters);
  const line = lines[nearest] as number;
  return (line - meters) * sign > SAME_METERS ? line : lines[nearest + sign];
}

function other(axis: Axis): Axis {
  return axis === 'along' ? 'across' : 'along';
}
