/**
 * A world (what happens to a simulated lock, and what its sensors read) under external control: its events are
 * scheduled in advance, by a scenario, or during the run, by a user in a shell.
 *
 * The world turns a device event, such as a ride, into changes that the lock notices, such as motion. It does so only
 * when the event is due, because the changes depend on where the bicycle stands, whether the lock is open, and what
 * else is in progress.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import type { Destination, DeviceEvent } from '../device-event/device-event.js';
import type { Prng } from '../prng.js';
import { motionsOf } from './episode.js';
import { type City, metersAlong, type Place, placeAlong, positionOf } from './routes/city.js';
import type { Motion, Route } from './routes/route.js';
import { StreetRoute } from './routes/street-route.js';
import type { WaypointPath } from './routes/waypoint-route.js';
import {
  type AttachedLock,
  type InitialState,
  mastPositionOf,
  type World,
  type WorldChange,
  type WorldEvent,
} from './world.js';

/** Device events that act through the world. The caller must handle commands and waiting. */
export type DirectedEvent = Exclude<DeviceEvent, { type: 'command' } | { type: 'wait' }>;

/** Where the bicycle is at the start, and the places and paths that events may name. */
export interface DirectedWorldOptions {
  readonly prng: Prng;
  readonly city: City;
  readonly initialState: InitialState;
  /** Where the bicycle stands at the start. */
  readonly place: Place;
  /** The places that an event names as `to NAME`. */
  readonly places: ReadonlyMap<string, Place>;
  /** Paths read from files, by the name that an event gives, in the same city. */
  readonly files?: ReadonlyMap<string, WaypointPath>;
}

/**
 * Pending events of one group can be cancelled together: `trip` has those of a ride or theft, `coverage` those of the
 * cellular network, `sky` those of GPS reception, `jostle` those of a short push that moves the parked bicycle. Events
 * of `none` are never cancelled.
 */
type EventGroup = 'trip' | 'coverage' | 'sky' | 'jostle' | 'none';

/** A device event that is not due yet, or a change that the lock will notice. */
interface PendingEntry {
  readonly atMs: number;
  readonly group: EventGroup;
  readonly entry: DirectedEvent | { readonly type: 'change'; readonly change: WorldChange };
}

/** The time between opening the lock and riding off, and between stopping and closing the lock. */
const LOCK_HANDLING_MS: Milliseconds = Seconds(10);
/** The time between a phone's report and the movement of the shackle. */
const PHONE_DELAY_MS: Milliseconds = Seconds(1);
/** Maximum number of pending events of one lock. */
const MAX_PENDING_EVENTS = 100_000;

/** See the top of this file. */
export class DirectedWorld implements World {
  readonly initialState: InitialState;
  readonly #options: DirectedWorldOptions;
  /** In order of time. */
  readonly #pending: PendingEntry[] = [];
  #lock: AttachedLock | undefined;
  /** The route in progress; undefined while the bicycle is parked. */
  #route: Route | undefined;
  /** Where the bicycle stands, or stood before the route. */
  #parked: Motion;
  /** The shackle's state after the world's own events. An attached lock's state takes precedence. */
  #lockState: 'locked' | 'unlocked';

  constructor(options: DirectedWorldOptions) {
    this.#options = options;
    this.initialState = options.initialState;
    this.#lockState = options.initialState.lockState;
    this.#parked = { place: options.place, speedMetersPerSecond: 0, directionDegrees: 0 };
  }

  attach(lock: AttachedLock): void {
    this.#lock = lock;
  }

  /** Why this world can't schedule the event, as a sentence; undefined if it can. */
  refusalOf(event: DeviceEvent): string | undefined {
    if (event.type !== 'ride' && event.type !== 'theft') return undefined;
    const { destination } = event;
    const { places, files } = this.#options;
    if (destination.type === 'place' && !places.has(destination.name))
      return `there is no place ${JSON.stringify(destination.name)}: expected ${oneOf([...places.keys()], 'places')}`;
    if (destination.type === 'file' && files?.has(destination.file) !== true)
      return `the route ${JSON.stringify(destination.file)} has not been read`;
    return undefined;
  }

  /**
   * Schedules an event at `atMs`. An event in the past is applied at once.
   *
   * @throws LockgateError `input-happening` if the event is impossible here, or too many events are pending
   */
  schedule(event: DirectedEvent, atMs: number): void {
    const refusal = this.refusalOf(event);
    if (refusal !== undefined) throw new LockgateError('input-happening', refusal);
    if (this.#pending.length >= MAX_PENDING_EVENTS)
      throw new LockgateError('input-happening', `one lock has more than ${MAX_PENDING_EVENTS} pending events`);
    this.#add({ atMs, group: 'none', entry: event });
    this.#lock?.checkWorld();
  }

  /** Whether events of the bicycle are pending. The pending end of a network or GPS outage does not count. */
  get isBusy(): boolean {
    return this.#pending.some(({ group }) => group !== 'coverage' && group !== 'sky');
  }

  nextAtMs(): number {
    return this.#pending[0]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Removes the next entry. Returns it if it is a change that the lock notices, otherwise applies it. */
  takeEvent(): WorldEvent | undefined {
    const next = this.#pending.shift();
    if (next === undefined) return undefined;
    if (next.entry.type !== 'change') {
      this.#apply(next.entry, next.atMs);
      return undefined;
    }
    const { change } = next.entry;
    if (change.type === 'lock-state') this.#lockState = change.lockState;
    return { atMs: next.atMs, change };
  }

  fixAt(atMs: number): GpsFix {
    const { place, speedMetersPerSecond, directionDegrees } = this.#motionAt(atMs);
    // 4 to 15 m, by place: how much of the sky is visible depends on the street, not on the moment.
    const uncertaintyMeters = 4 + (Math.abs(place.eastMeters + place.northMeters) % 11);
    return {
      position: positionOf(this.#options.city, place, uncertaintyMeters),
      speedMetersPerSecond: toHundredths(speedMetersPerSecond),
      directionDegrees: toHundredths(directionDegrees) % 360,
    };
  }

  /** GPS has no error here: a reading depends only on the moment, so that runs can be compared. */
  trueFixAt(atMs: number): GpsFix {
    return this.fixAt(atMs);
  }

  cellPositionAt(atMs: number): Position {
    return mastPositionOf(this.#options.city, this.#motionAt(atMs).place);
  }

  #motionAt(atMs: number): Motion {
    const route = this.#route;
    return route === undefined || atMs < route.startMs ? this.#parked : route.at(atMs);
  }

  /** Inserts an entry in order of time. Entries of the same moment stay in the order of insertion. */
  #add(pending: PendingEntry): void {
    const nextIndex = this.#pending.findIndex(({ atMs }) => atMs > pending.atMs);
    this.#pending.splice(nextIndex === -1 ? this.#pending.length : nextIndex, 0, pending);
  }

  #change(atMs: number, group: EventGroup, change: WorldChange): void {
    this.#add({ atMs: Math.round(atMs), group, entry: { type: 'change', change } });
  }

  #cancel(group: EventGroup): void {
    const others = this.#pending.filter((pending) => pending.group !== group);
    this.#pending.splice(0, this.#pending.length, ...others);
  }

  /** Turns a device event that is due into pending changes. */
  #apply(event: DirectedEvent, atMs: number): void {
    switch (event.type) {
      case 'lock-state':
        // A rider stops before closing the shackle.
        if (event.lockState === 'locked' && this.#isUnlocked()) this.#stopMoving(atMs);
        this.#change(atMs, 'none', { type: 'lock-state', lockState: event.lockState });
        break;
      case 'ride':
        this.#ride(event.destination, atMs);
        break;
      case 'theft':
        this.#steal(event.destination, atMs);
        break;
      case 'found':
        this.#stopMoving(atMs);
        break;
      case 'jostle':
        this.#change(atMs, 'jostle', { type: 'motion', moving: true });
        this.#change(atMs + event.span, 'jostle', { type: 'motion', moving: false });
        break;
      case 'coverage':
        this.#switchFor(atMs, 'coverage', event.span, event.covered, (covered) => {
          return { type: 'coverage', covered };
        });
        break;
      case 'sky':
        this.#switchFor(atMs, 'sky', event.span, event.open, (open) => ({ type: 'sky', open }));
        break;
      case 'phone':
        this.#change(atMs + PHONE_DELAY_MS, 'none', { type: 'lock-state', lockState: event.lockState });
        break;
      case 'reboot':
        this.#change(atMs, 'none', { type: 'boot' });
        break;
      default:
        // All other device events are also world changes.
        this.#change(atMs, 'none', event);
        break;
    }
  }

  #isUnlocked(): boolean {
    return (this.#lock?.state.lockState ?? this.#lockState) === 'unlocked';
  }

  /** Switches on or off for `span`, or permanently. A later event replaces the pending end of an earlier event. */
  #switchFor(
    atMs: number,
    group: EventGroup,
    span: Milliseconds | null,
    isOn: boolean,
    changeTo: (isOn: boolean) => WorldChange,
  ): void {
    this.#cancel(group);
    this.#change(atMs, group, changeTo(isOn));
    if (span !== null) this.#change(atMs + span, group, changeTo(!isOn));
  }

  /** Ends the route in progress and parks the bicycle at its current place. */
  #stopMoving(atMs: number): void {
    const isUnderWay = this.#pending.some(({ group }) => group === 'trip');
    this.#parked = { ...this.#motionAt(atMs), speedMetersPerSecond: 0 };
    this.#route = undefined;
    this.#cancel('trip');
    if (isUnderWay) this.#change(atMs, 'trip', { type: 'motion', moving: false });
  }

  /** A rider unlocks if necessary, rides at 3.5 to 6.5 m/s with stops, and locks again if the ride unlocked. */
  #ride(destination: Destination, atMs: number): void {
    this.#stopMoving(atMs);
    const mustUnlock = !this.#isUnlocked();
    if (mustUnlock) this.#change(atMs, 'none', { type: 'lock-state', lockState: 'unlocked' });
    const { prng } = this.#options;
    const route = this.#routeTo(destination, atMs + (mustUnlock ? LOCK_HANDLING_MS : 0), prng.between(3.5, 6.5), true);
    this.#follow(route, motionsOf(route));
    if (mustUnlock) this.#change(route.endMs + LOCK_HANDLING_MS, 'trip', { type: 'lock-state', lockState: 'locked' });
  }

  /** A thief moves the locked bicycle at 2 to 8 m/s and does not stop at traffic lights. */
  #steal(destination: Destination, atMs: number): void {
    this.#stopMoving(atMs);
    const route = this.#routeTo(destination, atMs, this.#options.prng.between(2, 8), false);
    this.#follow(route, [
      { atMs: route.startMs, change: { type: 'motion', moving: true } },
      { atMs: route.endMs, change: { type: 'motion', moving: false } },
    ]);
  }

  /** Starts a route. `motions` are the starts and stops that the motion sensor reports. */
  #follow(route: Route, motions: readonly WorldEvent[]): void {
    this.#cancel('jostle');
    this.#route = route;
    for (const { atMs, change } of motions) this.#change(atMs, 'trip', change);
  }

  #routeTo(destination: Destination, startMs: number, speedMetersPerSecond: number, hasStops: boolean): Route {
    const { city, prng, places, files } = this.#options;
    const from = this.#parked.place;
    if (destination.type === 'file') {
      const path = files?.get(destination.file);
      if (path === undefined)
        throw new Error(`the route ${destination.file} should have been refused when it was scheduled`);
      // The ride starts at the nearer end, so that a later ride along the same path leads back.
      const isBack = metersBetween(from, path.end) < metersBetween(from, path.start);
      return path.ride({ startMs, speedMetersPerSecond, isBack });
    }
    const to =
      destination.type === 'meters'
        ? placeAlong(from, prng.between(0, 360), destination.meters)
        : (places.get(destination.name) ?? from);
    return new StreetRoute(prng, { city, from, to, startMs, speedMetersPerSecond, hasStops });
  }
}

/** The straight distance, from its northern (0°) and its eastern part (90°). */
function metersBetween(from: Place, to: Place): number {
  return Math.hypot(metersAlong(from, to, 0), metersAlong(from, to, 90));
}

/** A list of names, for the part of an error that says what was expected. */
export function oneOf(names: readonly string[], noun: string): string {
  return names.length === 0 ? `one of the ${noun}, but there are none` : `one of ${names.join(', ')}`;
}

/** Rounds to hundredths, the resolution of speed and direction in the wire format. */
function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
