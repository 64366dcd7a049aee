/**
 * A world that does as it is told: what happens to the lock is planned in advance (a scenario) or said as it goes (a
 * shell). A happening becomes what the lock notices of it when its time has come, and not before, so that it fits what
 * is then: where the bicycle stands, whether the lock is open, what is under way.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import type { Prng } from '../prng.js';
import { motionsOf } from './chapter.js';
import type { DeviceEvent, Goal } from './device-event.js';
import { type City, metersAlong, type Place, placeAlong, positionOf } from './routes/city.js';
import type { Motion, Route } from './routes/route.js';
import { StreetRoute } from './routes/street-route.js';
import type { WaypointPath } from './routes/waypoint-route.js';
import {
  CELL_UNCERTAINTY_METERS,
  type Surrounded,
  type World,
  type WorldBeginning,
  type WorldChange,
  type WorldEvent,
} from './world.js';

/** What happens to a lock through its world; commands and waiting are for others. */
export type DirectedEvent = Exclude<DeviceEvent, { type: 'command' } | { type: 'wait' }>;

export interface DirectedWorldOptions {
  readonly prng: Prng;
  readonly city: City;
  readonly beginning: WorldBeginning;
  /** Where the bicycle stands at first. */
  readonly place: Place;
  /** Where `to NAME` leads. */
  readonly places: ReadonlyMap<string, Place>;
  /** The ways of files, by the name that a happening gives, as places in the same city. */
  readonly files?: ReadonlyMap<string, WaypointPath>;
}

/** What something belongs to that can be called off as a whole. */
type Thread = 'way' | 'coverage' | 'sky' | 'jostle' | 'none';

/** What is to come: a happening that is still to become something, or what the lock will notice. */
interface Coming {
  readonly atMs: number;
  readonly thread: Thread;
  readonly what: DirectedEvent | { readonly type: 'change'; readonly change: WorldChange };
}

/** Between opening the lock and moving off, and between standing still and closing it. */
const AT_THE_LOCK: Milliseconds = Seconds(10);
/** A phone speaks first; then the shackle moves. */
const PHONE_TAKES: Milliseconds = Seconds(1);
/** How much may be to come: more than anybody plans. */
const MOST_TO_COME = 100_000;

export class DirectedWorld implements World {
  readonly beginning: WorldBeginning;
  readonly #options: DirectedWorldOptions;
  readonly #coming: Coming[] = [];
  #lock: Surrounded | undefined;
  #way: Route | undefined;
  #stood: Motion;
  /** What the shackle is like as far as the world moved it; the lock itself knows better where there is one. */
  #lockState: 'locked' | 'unlocked';

  constructor(options: DirectedWorldOptions) {
    this.#options = options;
    this.beginning = options.beginning;
    this.#lockState = options.beginning.lockState;
    this.#stood = { place: options.place, speedMetersPerSecond: 0, directionDegrees: 0 };
  }

  surround(lock: Surrounded): void {
    this.#lock = lock;
  }

  /** What keeps a happening from being told to this world; undefined where nothing does. */
  refuses(happening: DeviceEvent): string | undefined {
    if (happening.type !== 'ride' && happening.type !== 'theft') return undefined;
    const { goal } = happening;
    const { places, files } = this.#options;
    if (goal.type === 'place' && !places.has(goal.name))
      return `there is no place ${JSON.stringify(goal.name)}: expected ${oneOf([...places.keys()], 'places')}`;
    if (goal.type === 'file' && files?.has(goal.file) !== true)
      return `the way ${JSON.stringify(goal.file)} has not been read`;
    return undefined;
  }

  /**
   * Lets something happen at `atMs`; what is past happens at once.
   *
   * @throws LockgateError `input-happening` where it can't happen here, or far too much is to come
   */
  tell(happening: DirectedEvent, atMs: number): void {
    const refused = this.refuses(happening);
    if (refused !== undefined) throw new LockgateError('input-happening', refused);
    if (this.#coming.length >= MOST_TO_COME)
      throw new LockgateError('input-happening', `more than ${MOST_TO_COME} things are to happen to one lock`);
    this.#add({ atMs, thread: 'none', what: happening });
    this.#lock?.look();
  }

  /** Whether something goes on with the bicycle. That network or sky come back some time counts for nothing. */
  get isBusy(): boolean {
    return this.#coming.some(({ thread }) => thread !== 'coverage' && thread !== 'sky');
  }

  nextAtMs(): number {
    return this.#coming[0]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** What the lock notices next; undefined where what happens next is nothing that it does. */
  take(): WorldEvent | undefined {
    const next = this.#coming.shift();
    if (next === undefined) return undefined;
    if (next.what.type !== 'change') {
      this.#unfold(next.what, next.atMs);
      return undefined;
    }
    const { change } = next.what;
    if (change.type === 'lock-state') this.#lockState = change.lockState;
    return { atMs: next.atMs, change };
  }

  fixAt(atMs: number): GpsFix {
    const { place, speedMetersPerSecond, directionDegrees } = this.#motionAt(atMs);
    // How well the sky is seen changes from street to street, not from one moment to the next.
    const uncertaintyMeters = 4 + (Math.abs(place.eastMeters + place.northMeters) % 11);
    return {
      position: positionOf(this.#options.city, place, uncertaintyMeters),
      speedMetersPerSecond: toHundredths(speedMetersPerSecond),
      directionDegrees: toHundredths(directionDegrees) % 360,
    };
  }

  /** Its GPS is without error: what is read depends on nothing but the moment, so that runs can be compared. */
  truthAt(atMs: number): GpsFix {
    return this.fixAt(atMs);
  }

  /** The network knows the mast, not the lock. */
  cellPositionAt(atMs: number): Position {
    const { place } = this.#motionAt(atMs);
    const ofMast = (meters: number): number => Math.round(meters / CELL_UNCERTAINTY_METERS) * CELL_UNCERTAINTY_METERS;
    const mast = { eastMeters: ofMast(place.eastMeters), northMeters: ofMast(place.northMeters) };
    return positionOf(this.#options.city, mast, CELL_UNCERTAINTY_METERS);
  }

  #motionAt(atMs: number): Motion {
    const way = this.#way;
    return way === undefined || atMs < way.startMs ? this.#stood : way.at(atMs);
  }

  /** In order of time; what was told first of one moment comes first. */
  #add(coming: Coming): void {
    const after = this.#coming.findIndex(({ atMs }) => atMs > coming.atMs);
    this.#coming.splice(after === -1 ? this.#coming.length : after, 0, coming);
  }

  #change(atMs: number, thread: Thread, change: WorldChange): void {
    this.#add({ atMs: Math.round(atMs), thread, what: { type: 'change', change } });
  }

  #callOff(thread: Thread): void {
    const kept = this.#coming.filter((coming) => coming.thread !== thread);
    this.#coming.splice(0, this.#coming.length, ...kept);
  }

  #unfold(happening: DirectedEvent, atMs: number): void {
    switch (happening.type) {
      case 'lock-state':
        // Nobody pushes the shackle in while riding.
        if (happening.lockState === 'locked' && this.#isUnlocked()) this.#standStill(atMs);
        this.#change(atMs, 'none', { type: 'lock-state', lockState: happening.lockState });
        break;
      case 'ride':
        this.#ride(happening.goal, atMs);
        break;
      case 'theft':
        this.#steal(happening.goal, atMs);
        break;
      case 'found':
        this.#standStill(atMs);
        break;
      case 'jostle':
        this.#change(atMs, 'jostle', { type: 'motion', moving: true });
        this.#change(atMs + happening.span, 'jostle', { type: 'motion', moving: false });
        break;
      case 'coverage':
        this.#forAWhile(atMs, 'coverage', happening.span, happening.covered, (covered) => {
          return { type: 'coverage', covered };
        });
        break;
      case 'sky':
        this.#forAWhile(atMs, 'sky', happening.span, happening.open, (open) => ({ type: 'sky', open }));
        break;
      case 'phone':
        this.#change(atMs + PHONE_TAKES, 'none', { type: 'lock-state', lockState: happening.lockState });
        break;
      case 'reboot':
        this.#change(atMs, 'none', { type: 'boot' });
        break;
      default:
        this.#change(atMs, 'none', happening);
        break;
    }
  }

  #isUnlocked(): boolean {
    return (this.#lock?.state.lockState ?? this.#lockState) === 'unlocked';
  }

  /** One that comes later has the last word on how long. */
  #forAWhile(
    atMs: number,
    thread: Thread,
    span: Milliseconds | null,
    isOn: boolean,
    changeTo: (isOn: boolean) => WorldChange,
  ): void {
    this.#callOff(thread);
    this.#change(atMs, thread, changeTo(isOn));
    if (span !== null) this.#change(atMs + span, thread, changeTo(!isOn));
  }

  /** Ends the way that is under way, and stands where it has led to by now. */
  #standStill(atMs: number): void {
    const isUnderWay = this.#coming.some(({ thread }) => thread === 'way');
    this.#stood = { ...this.#motionAt(atMs), speedMetersPerSecond: 0 };
    this.#way = undefined;
    this.#callOff('way');
    if (isUnderWay) this.#change(atMs, 'way', { type: 'motion', moving: false });
  }

  #ride(goal: Goal, atMs: number): void {
    this.#standStill(atMs);
    const opens = !this.#isUnlocked();
    if (opens) this.#change(atMs, 'none', { type: 'lock-state', lockState: 'unlocked' });
    const { prng } = this.#options;
    const way = this.#layWay(goal, atMs + (opens ? AT_THE_LOCK : 0), prng.between(3.5, 6.5), true);
    this.#take(way, motionsOf(way));
    if (opens) this.#change(way.endMs + AT_THE_LOCK, 'way', { type: 'lock-state', lockState: 'locked' });
  }

  /** A thief does not wait at a light: the bicycle moves until it is put down. */
  #steal(goal: Goal, atMs: number): void {
    this.#standStill(atMs);
    const way = this.#layWay(goal, atMs, this.#options.prng.between(2, 8), false);
    this.#take(way, [
      { atMs: way.startMs, change: { type: 'motion', moving: true } },
      { atMs: way.endMs, change: { type: 'motion', moving: false } },
    ]);
  }

  #take(way: Route, motions: readonly WorldEvent[]): void {
    this.#callOff('jostle');
    this.#way = way;
    for (const { atMs, change } of motions) this.#change(atMs, 'way', change);
  }

  #layWay(goal: Goal, startMs: number, speedMetersPerSecond: number, hasStops: boolean): Route {
    const { city, prng, places, files } = this.#options;
    const from = this.#stood.place;
    if (goal.type === 'file') {
      const path = files?.get(goal.file);
      if (path === undefined) throw new Error(`the way ${goal.file} was refused when it was told`);
      // From whichever end is nearer: there in the morning, and back in the evening.
      const isBack = metersBetween(from, path.end) < metersBetween(from, path.start);
      return path.ride({ startMs, speedMetersPerSecond, isBack });
    }
    const to =
      goal.type === 'meters' ? placeAlong(from, prng.between(0, 360), goal.meters) : (places.get(goal.name) ?? from);
    return new StreetRoute(prng, { city, from, to, startMs, speedMetersPerSecond, hasStops });
  }
}

function metersBetween(one: Place, other: Place): number {
  return Math.hypot(metersAlong(one, other, 0), metersAlong(one, other, 90));
}

/** A closed list of names for a sentence on what was expected. */
export function oneOf(names: readonly string[], noun: string): string {
  return names.length === 0 ? `that there were ${noun}, and there are none` : `one of ${names.join(', ')}`;
}

/** What the wire carries of speed and direction. */
function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
