/**
 * A chapter of a bicycle's life: a ride, a theft, a time in which it stands. Each says what happens to the lock, in
 * order of time, and the way it takes. Chapters are made up from a seed and put one after another (planned-world.ts).
 */
import { Minutes, Seconds } from '../../proto/clock.js';
import type { Prng } from '../prng.js';
import type { City, Place } from './routes/city.js';
import type { Route } from './routes/route.js';
import { StreetRoute } from './routes/street-route.js';
import { sortByTime, type WorldChange, type WorldEvent } from './world.js';

export interface Chapter {
  readonly events: readonly WorldEvent[];
  readonly route: Route | undefined;
  readonly endMs: number;
}

export interface Way {
  readonly city: City;
  readonly from: Place;
  readonly to: Place;
  readonly startMs: number;
}

/** How long a bicycle must stand until its lock's sensor takes it to stand. */
const NOTICED_STOP = Seconds(15);

/** Collects what happens, and puts it in order. */
class Happenings {
  readonly #events: WorldEvent[] = [];

  at(atMs: number, change: WorldChange): void {
    this.#events.push({ atMs: Math.round(atMs), change });
  }

  inOrder(): WorldEvent[] {
    sortByTime(this.#events);
    return this.#events;
  }
}

/** The way that somebody takes who begins to ride at `startMs`, about so fast. */
export type RouteMaker = (startMs: number, speedMetersPerSecond: number) => Route;

/** Unlock at `startMs`, ride, lock: with stops, a tunnel now and then, and a garage at the end of some. */
export function ride(prng: Prng, startMs: number, routeOf: RouteMaker): Chapter {
  const happens = new Happenings();
  const leavesMs = startMs + prng.between(Seconds(5), Seconds(25));
  const route = routeOf(leavesMs, prng.between(3.5, 6.5));
  happens.at(startMs, { type: 'tether', tetherState: 'detached' });
  happens.at(startMs, { type: 'lock-state', lockState: 'unlocked' });
  happens.at(startMs, { type: 'sky', open: true });
  happens.at(startMs, { type: 'coverage', covered: true });
  moves(happens, route);
  if (prng.chance(0.15)) tunnel(prng, happens, route);
  // Most lock at once. Some look for their bag first, or forget.
  const lockedMs = route.endMs + prng.between(Seconds(4), prng.chance(0.1) ? Minutes(12) : Seconds(30));
  happens.at(lockedMs, { type: 'lock-state', lockState: 'locked' });
  if (prng.chance(0.3)) happens.at(lockedMs, { type: 'tether', tetherState: 'attached' });
  if (prng.chance(0.12)) garage(prng, happens, lockedMs);
  const events = happens.inOrder();
  return { events, route, endMs: (events.at(-1)?.atMs ?? route.endMs) + Seconds(10) };
}

/** Somebody carries or wheels the locked bicycle away. It stays locked, and stands where it was left. */
export function theft(prng: Prng, way: Way): Chapter {
  const happens = new Happenings();
  const speedMetersPerSecond = prng.chance(0.5) ? prng.between(1, 2) : prng.between(6, 12);
  const route = new StreetRoute(prng, { ...way, speedMetersPerSecond });
  happens.at(way.startMs, { type: 'tether', tetherState: 'detached' });
  moves(happens, route);
  if (prng.chance(0.2)) tunnel(prng, happens, route);
  return { events: happens.inOrder(), route, endMs: route.endMs + Seconds(1) };
}

/** How often what happens to a bicycle that stands. Shares of one, for each time it stands. */
export interface Chances {
  readonly jostled: number;
  readonly outage: number;
  readonly modemReset: number;
  readonly reboot: number;
  readonly airplane: number;
}

/** The bicycle stands: jostled now and then, out of reach for a while, its modem restarted, taken on an airplane. */
export function parked(prng: Prng, startMs: number, endMs: number, chances: Chances): Chapter {
  const happens = new Happenings();
  const span = endMs - startMs;
  const sometime = (): number => startMs + span * prng.between(0.05, 0.7);
  if (prng.chance(chances.jostled)) {
    const atMs = sometime();
    happens.at(atMs, { type: 'motion', moving: true });
    happens.at(atMs + prng.between(Seconds(0.5), Seconds(5)), { type: 'motion', moving: false });
  }
  if (prng.chance(chances.outage)) {
    const atMs = sometime();
    happens.at(atMs, { type: 'coverage', covered: false });
    happens.at(atMs + span * prng.between(0.05, 0.25), { type: 'coverage', covered: true });
  }
  if (prng.chance(chances.modemReset)) happens.at(sometime(), { type: 'modem-reset' });
  if (prng.chance(chances.reboot)) happens.at(sometime(), { type: 'boot' });
  if (prng.chance(chances.airplane)) {
    const atMs = sometime();
    happens.at(atMs, { type: 'settings', change: { airplane: true } });
    happens.at(atMs + span * prng.between(0.05, 0.25), { type: 'settings', change: { airplane: false } });
  }
  return { events: happens.inOrder(), route: undefined, endMs };
}

function moves(happens: Happenings, route: Route): void {
  for (const { atMs, change } of motionsOf(route)) happens.at(atMs, change);
}

/** What the motion sensor notices of a way, in order of time. */
export function motionsOf(way: Pick<Route, 'startMs' | 'endMs' | 'stops'>): WorldEvent[] {
  const events: WorldEvent[] = [];
  const moving = (atMs: number, isMoving: boolean): void => {
    events.push({ atMs: Math.round(atMs), change: { type: 'motion', moving: isMoving } });
  };
  moving(way.startMs, true);
  for (const stop of way.stops(NOTICED_STOP)) {
    moving(stop.startMs, false);
    if (stop.endMs < way.endMs) moving(stop.endMs, true);
  }
  moving(way.endMs, false);
  return events;
}

function tunnel(prng: Prng, happens: Happenings, route: Route): void {
  const span = route.endMs - route.startMs;
  const inMs = route.startMs + span * prng.between(0.2, 0.7);
  const outMs = inMs + Math.min(span * 0.25, prng.between(Seconds(20), Minutes(2)));
  happens.at(inMs, { type: 'sky', open: false });
  happens.at(outMs, { type: 'sky', open: true });
  if (prng.chance(0.5)) return;
  happens.at(inMs, { type: 'coverage', covered: false });
  happens.at(outMs, { type: 'coverage', covered: true });
}

/** No sky until the next ride; sometimes no network either, for a while. */
function garage(prng: Prng, happens: Happenings, atMs: number): void {
  happens.at(atMs, { type: 'sky', open: false });
  if (prng.chance(0.7)) return;
  happens.at(atMs, { type: 'coverage', covered: false });
  happens.at(atMs + prng.between(Minutes(1), Minutes(4)), { type: 'coverage', covered: true });
}
