/**
 * The life of a bicycle and its person, made up from a seed: parked, ridden, stolen now and then and found again. It is
 * planned one chapter ahead, so that a year costs no memory.
 */
import { Hours, Minutes, Seconds } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import { DEFAULT_POWER, type Position, type PowerSettings } from '../../proto/wire/ping.js';
import { exactFix, GpsReceiver } from '../lock/gps-receiver.js';
import type { Prng } from '../prng.js';
import { LockBattery } from './battery/battery.js';
import { EbikeBattery } from './battery/ebike-battery.js';
import { type Chapter, parked, type RouteMaker, ride, theft } from './chapter.js';
import type { DayPattern, Goal } from './day-pattern.js';
import type { Opening } from './opening.js';
import type { Pace } from './pace.js';
import { type City, type Place, placeAlong, positionOf } from './routes/city.js';
import type { Motion, Route } from './routes/route.js';
import { StreetRoute } from './routes/street-route.js';
import type { WaypointPath } from './routes/waypoint-route.js';
import {
  CELL_UNCERTAINTY_METERS,
  sortByTime,
  type World,
  type WorldBeginning,
  type WorldChange,
  type WorldEvent,
} from './world.js';

export interface PlannedWorldOptions {
  readonly prng: Prng;
  readonly city: City;
  /** The way that is ridden, there and back, of the same city; through its streets where it is left out. */
  readonly path?: WaypointPath;
  readonly startMs: number;
  readonly pace: Pace;
  /** What happens first; nothing in particular where it is left out. */
  readonly opening?: Opening;
  /** How the lock is found, where the opening does not say; by chance where this does not either. */
  readonly begins?: Begins;
}

/** Settings and battery of a lock at its beginning. */
export interface Begins {
  readonly power?: PowerSettings;
  readonly batteryPercent?: number;
}

/** Nearer to each other than this, the ends of a way are one place: it goes round. */
const SAME_PLACE_METERS = 50;
/** At which nobody forgets to charge: a phone can hardly open the lock any more. */
const CHARGES_ALWAYS_PERCENT = 2;

export class PlannedWorld implements World {
  readonly beginning: WorldBeginning;
  readonly battery: LockBattery;
  readonly #prng: Prng;
  readonly #city: City;
  readonly #path: WaypointPath | undefined;
  readonly #pace: Pace;
  readonly #pattern: DayPattern;
  readonly #receiver: GpsReceiver;
  /** Where the person goes to and fro. */
  readonly #home: Place;
  readonly #work: Place;
  readonly #ebike: EbikeBattery | undefined;
  readonly #chargesBelowPercent: number;
  #events: WorldEvent[] = [];
  #taken = 0;
  /** When the next of them is; −1 where that is to be looked up. It is asked far more often than it changes. */
  #plannedMs = -1;
  /** Until when all is planned. */
  #untilMs: number;
  /** The ways of the chapter, and where the bicycle stood before. */
  #routes: Route[] = [];
  #stood: Motion;

  constructor({ prng, city, path, pace, startMs, opening, begins }: PlannedWorldOptions) {
    this.#prng = prng;
    this.#city = city;
    this.#path = path;
    this.#pace = pace;
    this.#pattern = pace.patternOf(prng.fork('pattern'), Minutes(city.utcOffsetMinutes));
    this.#receiver = new GpsReceiver(prng.fork('gps'), city);
    const [home, work] = [somewhere(prng, city), somewhere(prng, city)];
    this.#home = path?.start ?? home;
    this.#work = path?.end ?? work;
    this.#ebike = prng.chance(0.4) ? new EbikeBattery(prng.fork('e-bike')) : undefined;
    this.#chargesBelowPercent = prng.whole(4, 30);
    this.#stood = { place: this.#home, speedMetersPerSecond: 0, directionDegrees: 0 };
    const batteryPercent = opening?.batteryPercent ?? begins?.batteryPercent ?? prng.whole(12, 100);
    this.battery = new LockBattery({ startMs, percent: batteryPercent, times: pace.batteryTimes });
    this.#untilMs = startMs;
    this.beginning = {
      lockState: 'locked',
      batteryPercent,
      power: opening?.power ?? begins?.power ?? somePower(prng),
      ebikeVolts: this.#ebike?.volts ?? null,
      tetherState: 'detached',
      covered: true,
      skyOpen: true,
    };
    if (opening !== undefined) this.#play(opening);
  }

  nextAtMs(): number {
    if (this.#plannedMs < 0) this.#plannedMs = this.#nextPlanned()?.atMs ?? Number.POSITIVE_INFINITY;
    const batteryMs = this.battery.nextAtMs;
    return this.#plannedMs <= batteryMs ? this.#plannedMs : batteryMs;
  }

  take(): WorldEvent | undefined {
    const planned = this.#nextPlanned();
    const batteryMs = this.battery.nextAtMs;
    if (planned === undefined || batteryMs < planned.atMs)
      return { atMs: batteryMs, change: { type: 'battery', percent: this.battery.take() } };
    this.#taken += 1;
    this.#plannedMs = -1;
    const { atMs, change } = planned;
    if (change.type === 'lock-state') this.battery.turns(atMs);
    if (change.type === 'battery') this.battery.set(change.percent, atMs);
    return planned;
  }

  fixAt(atMs: number): GpsFix {
    return this.#receiver.read(atMs, this.#motionAt(atMs));
  }

  truthAt(atMs: number): GpsFix {
    return exactFix(this.#city, this.#motionAt(atMs));
  }

  /** The network knows the mast, not the lock. */
  cellPositionAt(atMs: number): Position {
    const { place } = this.#motionAt(atMs);
    const ofMast = (meters: number): number => Math.round(meters / CELL_UNCERTAINTY_METERS) * CELL_UNCERTAINTY_METERS;
    const mast = { eastMeters: ofMast(place.eastMeters), northMeters: ofMast(place.northMeters) };
    return positionOf(this.#city, mast, CELL_UNCERTAINTY_METERS);
  }

  #motionAt(atMs: number): Motion {
    for (let index = this.#routes.length - 1; index >= 0; index--) {
      const route = this.#routes[index];
      if (route !== undefined && route.startMs <= atMs) return route.at(atMs);
    }
    return this.#stood;
  }

  #nextPlanned(): WorldEvent | undefined {
    if (this.#taken >= this.#events.length) this.#plan();
    return this.#events[this.#taken];
  }

  /** Plans until the end of the next ride. */
  #plan(): void {
    const { chances, theft: theftChance } = this.#pace;
    const prng = this.#prng;
    this.#turnPage();
    const fromMs = this.#untilMs;
    let departure = this.#pattern.next(fromMs);
    while (this.#isThere(departure.goal)) departure = this.#pattern.next(departure.atMs);
    let departMs = departure.atMs;
    this.#add(parked(prng, fromMs, departMs, chances));
    this.#charges(fromMs, departMs);
    if (prng.chance(theftChance)) {
      // The thief comes when all else is over, and the owner finds the bicycle some time after.
      const to = placeAlong(this.#place(), prng.between(0, 360), prng.between(300, 3000));
      const chapter = theft(prng, { city: this.#city, from: this.#place(), to, startMs: departMs });
      this.#add(chapter);
      departMs = Math.round(chapter.endMs + prng.between(Minutes(20), Hours(3)));
    }
    this.#ride(departMs, departure.goal);
  }

  /** Whether there is nothing to ride for. */
  #isThere(goal: Goal): boolean {
    if (this.#isRound()) return false;
    const place = this.#place();
    return goal === 'home' ? isSame(place, this.#home) : goal === 'work' && isSame(place, this.#work);
  }

  /** Whether the way of one's own ends where it begins. */
  #isRound(): boolean {
    return this.#path !== undefined && metersBetween(this.#path.start, this.#path.end) < SAME_PLACE_METERS;
  }

  #play({ scenes, endsAfterMs }: Opening): void {
    const startMs = this.#untilMs;
    for (const scene of scenes) {
      const atMs = startMs + scene.afterMs;
      if (scene.type === 'ride') this.#ride(atMs, 'any');
      else if (scene.type === 'theft') {
        const to = placeAlong(this.#place(), this.#prng.between(0, 360), 1200);
        this.#add(theft(this.#prng, { city: this.#city, from: this.#place(), to, startMs: atMs }));
      } else this.#push(atMs, scene.change);
    }
    this.#sort();
    this.#untilMs = Math.max(this.#untilMs, startMs + endsAfterMs);
  }

  #ride(startMs: number, goal: Goal): void {
    const chapter = ride(this.#prng, startMs, this.#path === undefined ? this.#through(goal) : this.#along(goal));
    if (this.#ebike !== undefined && chapter.route !== undefined) {
      this.#ebike.rides(chapter.route.meters);
      this.#push(chapter.endMs, { type: 'ebike', volts: this.#ebike.volts });
    }
    this.#add(chapter);
  }

  /** Through the streets. */
  #through(goal: Goal): RouteMaker {
    const [prng, city, from] = [this.#prng, this.#city, this.#place()];
    const isOut = goal === 'out' || (goal === 'any' && prng.chance(0.25));
    const goesHome = goal === 'home' || (goal === 'any' && !isSame(from, this.#home));
    const to = isOut ? somewhere(prng, city) : goesHome ? this.#home : this.#work;
    return (startMs, speedMetersPerSecond) => {
      return new StreetRoute(prng, { city, from, to, startMs, speedMetersPerSecond });
    };
  }

  /** Along the way of one's own, or through the streets to where it begins. */
  #along(goal: Goal): RouteMaker {
    const [path, from] = [this.#path, this.#place()];
    const isBack = this.#isRound() ? goal === 'home' : isSame(from, this.#work);
    const isOnIt = isSame(from, this.#home) || isSame(from, this.#work);
    if (path === undefined || !isOnIt) return this.#through('home');
    return (startMs, speedMetersPerSecond) => path.ride({ startMs, speedMetersPerSecond, isBack });
  }

  /** Forgets what is over. */
  #turnPage(): void {
    this.#stood = this.#routes.at(-1)?.end ?? this.#stood;
    this.#routes = [];
    this.#events = [];
    this.#taken = 0;
  }

  #place(): Place {
    return (this.#routes.at(-1)?.end ?? this.#stood).place;
  }

  #add(chapter: Chapter): void {
    this.#events.push(...chapter.events);
    this.#sort();
    if (chapter.route !== undefined) this.#routes.push(chapter.route);
    this.#untilMs = Math.max(this.#untilMs, chapter.endMs);
  }

  #push(atMs: number, change: WorldChange): void {
    this.#events.push({ atMs: Math.round(atMs), change });
  }

  #sort(): void {
    sortByTime(this.#events);
  }

  /** Whoever sees that the battery is low charges it while the bicycle stands, unless they forget. */
  #charges(startMs: number, endMs: number): void {
    // Drawn each time, so that what drains the battery changes nothing else of a life.
    const forgets = this.#prng.chance(0.3);
    const { percent } = this.battery;
    if (percent >= this.#chargesBelowPercent || (forgets && percent > CHARGES_ALWAYS_PERCENT)) return;
    const span = endMs - startMs;
    this.battery.plug(Math.round(startMs + span / 8), Math.round(endMs - Math.min(span / 8, Seconds(30))));
  }
}

function isSame(one: Place, other: Place): boolean {
  return one.eastMeters === other.eastMeters && one.northMeters === other.northMeters;
}

function metersBetween(one: Place, other: Place): number {
  const [east, north] = [other.eastMeters - one.eastMeters, other.northMeters - one.northMeters];
  return Math.sqrt(east * east + north * north);
}

function somewhere(prng: Prng, city: City): Place {
  const middle: Place = { eastMeters: 0, northMeters: 0 };
  return placeAlong(middle, prng.between(0, 360), city.radiusMeters * Math.sqrt(prng.share()));
}

/** Most are in MID, some in HIGH by day, a few lost ones in recovery. */
function somePower(prng: Prng): PowerSettings {
  return {
    ...DEFAULT_POWER,
    mode: prng.chance(0.2) ? 'HIGH' : 'MID',
    rideTracking: prng.chance(0.3),
    recovery: prng.chance(0.02),
  };
}
