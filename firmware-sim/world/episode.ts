/**
 * Generates the episodes of a bicycle's life: a ride, a theft, a parking period. An episode has the events that happen
 * to the lock, in order of time, and the route taken. planned-world.ts asks for one episode after another.
 */
import { Minutes, Seconds } from '../../proto/clock.js';
import type { Prng } from '../prng.js';
import type { City, Place } from './routes/city.js';
import type { Route } from './routes/route.js';
import { StreetRoute } from './routes/street-route.js';
import { sortByTime, type WorldChange, type WorldEvent } from './world.js';

export interface Episode {
  readonly events: readonly WorldEvent[];
  readonly route: Route | undefined;
  readonly endMs: number;
}

export interface TheftRoute {
  readonly city: City;
  readonly from: Place;
  readonly to: Place;
  readonly startMs: number;
}

/** How long a bicycle must stand still until the lock's motion sensor reports a stop. */
const MIN_NOTICED_STOP_MS = Seconds(15);

/** Collects events and sorts them by time. */
class EventList {
  readonly #events: WorldEvent[] = [];

  add(atMs: number, change: WorldChange): void {
    this.#events.push({ atMs: Math.round(atMs), change });
  }

  sorted(): WorldEvent[] {
    sortByTime(this.#events);
    return this.#events;
  }
}

/** Makes the route of a rider who starts at `startMs`, with about this speed. */
export type RouteMaker = (startMs: number, speedMetersPerSecond: number) => Route;

/** A ride: unlock at `startMs`, ride with stops, lock. Sometimes with a tunnel, or a garage at the end. */
export function ride(prng: Prng, startMs: number, routeOf: RouteMaker): Episode {
  const list = new EventList();
  const leavesMs = startMs + prng.between(Seconds(5), Seconds(25));
  const route = routeOf(leavesMs, prng.between(3.5, 6.5));
  list.add(startMs, { type: 'tether', tetherState: 'detached' });
  list.add(startMs, { type: 'lock-state', lockState: 'unlocked' });
  list.add(startMs, { type: 'sky', open: true });
  list.add(startMs, { type: 'coverage', covered: true });
  addMotion(list, route);
  if (prng.chance(0.15)) addTunnel(prng, list, route);
  // Most people lock at once. Some look for their bag first, or forget.
  const lockedMs = route.endMs + prng.between(Seconds(4), prng.chance(0.1) ? Minutes(12) : Seconds(30));
  list.add(lockedMs, { type: 'lock-state', lockState: 'locked' });
  if (prng.chance(0.3)) list.add(lockedMs, { type: 'tether', tetherState: 'attached' });
  if (prng.chance(0.12)) addGarage(prng, list, lockedMs);
  const events = list.sorted();
  return { events, route, endMs: (events.at(-1)?.atMs ?? route.endMs) + Seconds(10) };
}

/** A theft: the locked bicycle is carried or wheeled away. It stays locked, and stays at the end of the route. */
export function theft(prng: Prng, theftRoute: TheftRoute): Episode {
  const list = new EventList();
  const speedMetersPerSecond = prng.chance(0.5) ? prng.between(1, 2) : prng.between(6, 12);
  const route = new StreetRoute(prng, { ...theftRoute, speedMetersPerSecond });
  list.add(theftRoute.startMs, { type: 'tether', tetherState: 'detached' });
  addMotion(list, route);
  if (prng.chance(0.2)) addTunnel(prng, list, route);
  return { events: list.sorted(), route, endMs: route.endMs + Seconds(1) };
}

/** How likely events are while a bicycle is parked: probabilities per parking period. */
export interface EventProbabilities {
  readonly jostled: number;
  readonly outage: number;
  readonly modemReset: number;
  readonly reboot: number;
  readonly airplane: number;
}

/** A parking period, sometimes with a jostle, an outage, a modem restart, a reboot, or airplane mode. */
export function parked(prng: Prng, startMs: number, endMs: number, probabilities: EventProbabilities): Episode {
  const list = new EventList();
  const span = endMs - startMs;
  const sometime = (): number => startMs + span * prng.between(0.05, 0.7);
  if (prng.chance(probabilities.jostled)) {
    const atMs = sometime();
    list.add(atMs, { type: 'motion', moving: true });
    list.add(atMs + prng.between(Seconds(0.5), Seconds(5)), { type: 'motion', moving: false });
  }
  if (prng.chance(probabilities.outage)) {
    const atMs = sometime();
    list.add(atMs, { type: 'coverage', covered: false });
    list.add(atMs + span * prng.between(0.05, 0.25), { type: 'coverage', covered: true });
  }
  if (prng.chance(probabilities.modemReset)) list.add(sometime(), { type: 'modem-reset' });
  if (prng.chance(probabilities.reboot)) list.add(sometime(), { type: 'boot' });
  if (prng.chance(probabilities.airplane)) {
    const atMs = sometime();
    list.add(atMs, { type: 'settings', change: { airplane: true } });
    list.add(atMs + span * prng.between(0.05, 0.25), { type: 'settings', change: { airplane: false } });
  }
  return { events: list.sorted(), route: undefined, endMs };
}

function addMotion(list: EventList, route: Route): void {
  for (const { atMs, change } of motionsOf(route)) list.add(atMs, change);
}

/** What the motion sensor reports along a route, in order of time. */
export function motionsOf(route: Pick<Route, 'startMs' | 'endMs' | 'stops'>): WorldEvent[] {
  const events: WorldEvent[] = [];
  const moving = (atMs: number, isMoving: boolean): void => {
    events.push({ atMs: Math.round(atMs), change: { type: 'motion', moving: isMoving } });
  };
  moving(route.startMs, true);
  for (const stop of route.stops(MIN_NOTICED_STOP_MS)) {
    moving(stop.startMs, false);
    if (stop.endMs < route.endMs) moving(stop.endMs, true);
  }
  moving(route.endMs, false);
  return events;
}

function addTunnel(prng: Prng, list: EventList, route: Route): void {
  const span = route.endMs - route.startMs;
  const inMs = route.startMs + span * prng.between(0.2, 0.7);
  const outMs = inMs + Math.min(span * 0.25, prng.between(Seconds(20), Minutes(2)));
  list.add(inMs, { type: 'sky', open: false });
  list.add(outMs, { type: 'sky', open: true });
  if (prng.chance(0.5)) return;
  list.add(inMs, { type: 'coverage', covered: false });
  list.add(outMs, { type: 'coverage', covered: true });
}

/** Adds a garage: no GPS until the next ride, and sometimes no network for a while. */
function addGarage(prng: Prng, list: EventList, atMs: number): void {
  list.add(atMs, { type: 'sky', open: false });
  if (prng.chance(0.7)) return;
  list.add(atMs, { type: 'coverage', covered: false });
  list.add(atMs + prng.between(Minutes(1), Minutes(4)), { type: 'coverage', covered: true });
}
