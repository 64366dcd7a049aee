/**
 * Generates what happens to a bicycle, in episodes: a ride, a theft, a parking period. An episode has the events that
 * happen to the lock, in order of time, and the route taken. planned-world.ts asks for one episode after another. The
 * probabilities and durations are plausible guesses. Random only by the given `prng`. `sky` stands for GPS reception, a
 * *jostle* is a short push that moves the parked bicycle.
 */
import { Minutes, Seconds } from '../../proto/clock.js';
import type { Prng } from '../prng.js';
import type { City, Place } from './routes/city.js';
import type { Route } from './routes/route.js';
import { StreetRoute } from './routes/street-route.js';
import { sortByTime, type WorldChange, type WorldEvent } from './world.js';

/** See the top of this file. Times are ms since the epoch. */
export interface Episode {
  readonly events: readonly WorldEvent[];
  readonly route: Route | undefined;
  readonly endMs: number;
}

/** From where to where a stolen bicycle is taken, and when. */
export interface TheftRoute {
  readonly city: City;
  readonly from: Place;
  readonly to: Place;
  readonly startMs: number;
}

/** How long a bicycle must stand still until the lock's motion sensor reports a stop. */
const MIN_NOTICED_STOP_MS = Seconds(15);

// One object serves all changes of a kind: lists of events are most of what a parked lock has in memory.
const MOVES: WorldChange = { type: 'motion', moving: true };
const STANDS: WorldChange = { type: 'motion', moving: false };
const SKY_OPENS: WorldChange = { type: 'sky', open: true };
const SKY_CLOSES: WorldChange = { type: 'sky', open: false };
const ENTERS_COVERAGE: WorldChange = { type: 'coverage', covered: true };
const LEAVES_COVERAGE: WorldChange = { type: 'coverage', covered: false };
const UNLOCKED: WorldChange = { type: 'lock-state', lockState: 'unlocked' };
const LOCKED: WorldChange = { type: 'lock-state', lockState: 'locked' };
const ATTACHED: WorldChange = { type: 'tether', tetherState: 'attached' };
const DETACHED: WorldChange = { type: 'tether', tetherState: 'detached' };

/** Collects events and sorts them by time. */
class EventList {
  readonly #events: WorldEvent[] = [];

  add(atMs: number, change: WorldChange): void {
    this.#events.push({ atMs: Math.round(atMs), change });
  }

  addAll(events: readonly WorldEvent[]): void {
    for (const event of events) this.#events.push(event);
  }

  sorted(): WorldEvent[] {
    sortByTime(this.#events);
    return this.#events;
  }
}

/** Makes the route of a rider who starts at `startMs`, with about this speed. */
export type RouteMaker = (startMs: number, speedMetersPerSecond: number) => Route;

/** A ride: unlock at `startMs`, ride with stops, lock. Sometimes with a tunnel, or a garage at the end. */
export function ride(prng: Prng, startMs: number, makeRoute: RouteMaker): Episode {
  const eventList = new EventList();
  const leavesMs = startMs + prng.between(Seconds(5), Seconds(25));
  const route = makeRoute(leavesMs, prng.between(3.5, 6.5));
  eventList.add(startMs, DETACHED);
  eventList.add(startMs, UNLOCKED);
  eventList.add(startMs, SKY_OPENS);
  eventList.add(startMs, ENTERS_COVERAGE);
  addMotion(eventList, route);
  if (prng.chance(0.15)) addTunnel(prng, eventList, route);
  // Most people lock at once. Some look for their bag first, or forget.
  const lockedMs = route.endMs + prng.between(Seconds(4), prng.chance(0.1) ? Minutes(12) : Seconds(30));
  eventList.add(lockedMs, LOCKED);
  if (prng.chance(0.3)) eventList.add(lockedMs, ATTACHED);
  if (prng.chance(0.12)) addGarage(prng, eventList, lockedMs);
  const events = eventList.sorted();
  return { events, route, endMs: (events.at(-1)?.atMs ?? route.endMs) + Seconds(10) };
}

/** A theft: the locked bicycle is carried or wheeled away. It stays locked, and stays at the end of the route. */
export function theft(prng: Prng, theftRoute: TheftRoute): Episode {
  const eventList = new EventList();
  // On foot, or in a vehicle.
  const speedMetersPerSecond = prng.chance(0.5) ? prng.between(1, 2) : prng.between(6, 12);
  const route = new StreetRoute(prng, { ...theftRoute, speedMetersPerSecond });
  eventList.add(theftRoute.startMs, DETACHED);
  addMotion(eventList, route);
  if (prng.chance(0.2)) addTunnel(prng, eventList, route);
  return { events: eventList.sorted(), route, endMs: route.endMs + Seconds(1) };
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
  const eventList = new EventList();
  const span = endMs - startMs;
  const sometime = (): number => startMs + span * prng.between(0.05, 0.7);
  if (prng.chance(probabilities.jostled)) {
    const atMs = sometime();
    eventList.add(atMs, MOVES);
    eventList.add(atMs + prng.between(Seconds(0.5), Seconds(5)), STANDS);
  }
  if (prng.chance(probabilities.outage)) {
    const atMs = sometime();
    eventList.add(atMs, LEAVES_COVERAGE);
    eventList.add(atMs + span * prng.between(0.05, 0.25), ENTERS_COVERAGE);
  }
  if (prng.chance(probabilities.modemReset)) eventList.add(sometime(), { type: 'modem-reset' });
  if (prng.chance(probabilities.reboot)) eventList.add(sometime(), { type: 'boot' });
  if (prng.chance(probabilities.airplane)) {
    const atMs = sometime();
    eventList.add(atMs, { type: 'settings', change: { airplane: true } });
    eventList.add(atMs + span * prng.between(0.05, 0.25), { type: 'settings', change: { airplane: false } });
  }
  return { events: eventList.sorted(), route: undefined, endMs };
}

function addMotion(eventList: EventList, route: Route): void {
  eventList.addAll(motionsOf(route));
}

/** What the motion sensor reports along a route, in order of time. */
export function motionsOf(route: Pick<Route, 'startMs' | 'endMs' | 'stops'>): WorldEvent[] {
  const events: WorldEvent[] = [];
  const moving = (atMs: number, isMoving: boolean): void => {
    events.push({ atMs: Math.round(atMs), change: isMoving ? MOVES : STANDS });
  };
  moving(route.startMs, true);
  for (const stop of route.stops(MIN_NOTICED_STOP_MS)) {
    moving(stop.startMs, false);
    if (stop.endMs < route.endMs) moving(stop.endMs, true);
  }
  moving(route.endMs, false);
  return events;
}

/** Adds a tunnel on the way: no GPS, and in half of the tunnels no network. */
function addTunnel(prng: Prng, eventList: EventList, route: Route): void {
  const span = route.endMs - route.startMs;
  const inMs = route.startMs + span * prng.between(0.2, 0.7);
  const outMs = inMs + Math.min(span * 0.25, prng.between(Seconds(20), Minutes(2)));
  eventList.add(inMs, SKY_CLOSES);
  eventList.add(outMs, SKY_OPENS);
  if (prng.chance(0.5)) return;
  eventList.add(inMs, LEAVES_COVERAGE);
  eventList.add(outMs, ENTERS_COVERAGE);
}

/** Adds a garage: no GPS until the next ride, and sometimes no network for a while. */
function addGarage(prng: Prng, eventList: EventList, atMs: number): void {
  eventList.add(atMs, SKY_CLOSES);
  if (prng.chance(0.7)) return;
  eventList.add(atMs, LEAVES_COVERAGE);
  eventList.add(atMs + prng.between(Minutes(1), Minutes(4)), ENTERS_COVERAGE);
}
