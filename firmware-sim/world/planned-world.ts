/**
 * A world (what happens to a simulated lock, and what its sensors read) whose events are generated from a seed: a
 * bicycle is parked, ridden, and sometimes stolen and found again. The world plans one ride ahead, so that a year takes
 * no more memory than a day. The ranges and probabilities are plausible guesses.
 */
import { Hours, Minutes, Seconds } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import { DEFAULT_POWER, type Position, type PowerSettings } from '../../proto/wire/ping.js';
import type { Prng } from '../prng.js';
import { LockBattery } from './battery/battery.js';
import { EbikeBattery } from './battery/ebike-battery.js';
import type { DayPattern, TripPurpose } from './day-pattern.js';
import type { DemoScript } from './demo-script.js';
import { type Episode, parked, type RouteMaker, ride, theft } from './episode.js';
import { exactFix, GpsReceiver } from './gps-receiver.js';
import type { Pace } from './pace.js';
import { type City, type Place, placeAlong } from './routes/city.js';
import type { Motion, Route } from './routes/route.js';
import { onStreet } from './routes/street-grid.js';
import { StreetRoute } from './routes/street-route.js';
import type { WaypointPath } from './routes/waypoint-route.js';
import {
  type InitialState,
  mastPositionOf,
  sortByTime,
  type World,
  type WorldChange,
  type WorldEvent,
} from './world.js';

/** The seed, the city and the habits of the rider, and how the lock starts. */
export interface PlannedWorldOptions {
  readonly prng: Prng;
  readonly city: City;
  /**
   * The path that the rider takes there and back, in the same city. By default, generated routes through the streets.
   */
  readonly path?: WaypointPath | undefined;
  readonly startMs: number;
  readonly pace: Pace;
  /** The first events. By default the generated events start at once. */
  readonly script?: DemoScript | undefined;
  /** The lock's first settings, for those that the script does not set. By default drawn from the seed. */
  readonly initial?: InitialSettings | undefined;
}

/** Settings and battery of a lock at the start. */
export interface InitialSettings {
  readonly power?: PowerSettings;
  readonly batteryPercent?: number;
}

/** A path whose ends are closer than this is a round trip. */
const SAME_PLACE_METERS = 50;
/** At this charge every rider charges the battery: a phone can hardly open the lock any more. */
const ALWAYS_CHARGED_PERCENT = 2;
/** The share of e-bikes, and the share of riders' decisions to charge that are forgotten. */
const EBIKE_PROBABILITY = 0.4;
const FORGETTING_PROBABILITY = 0.3;
/** How far a stolen bicycle is taken in the script of a demo. */
const SCRIPTED_THEFT_METERS = 1200;

/** See the top of this file. */
export class PlannedWorld implements World {
  readonly initialState: InitialState;
  readonly battery: LockBattery;
  readonly #prng: Prng;
  readonly #city: City;
  readonly #path: WaypointPath | undefined;
  readonly #pace: Pace;
  readonly #pattern: DayPattern;
  readonly #receiver: GpsReceiver;
  /** The two places that the rider commutes between. */
  readonly #home: Place;
  readonly #work: Place;
  readonly #ebike: EbikeBattery | undefined;
  /** The rider charges the lock's battery below this charge. */
  readonly #chargesBelowPercent: number;
  /** The planned events, and how many of them were taken. */
  #events: WorldEvent[] = [];
  #takenCount = 0;
  /** When the next planned event is due; −1 if unknown. Cached, since it is read far more often than it changes. */
  #nextPlannedMs = -1;
  /** The end of the planned period. */
  #plannedUntilMs: number;
  /** The routes of the current plan, and where the bicycle stood before the first of them. */
  #routes: Route[] = [];
  #parked: Motion;

  constructor({ prng, city, path, pace, startMs, script, initial }: PlannedWorldOptions) {
    this.#prng = prng;
    this.#city = city;
    this.#path = path;
    this.#pace = pace;
    this.#pattern = pace.patternOf(prng.fork('pattern'), Minutes(city.utcOffsetMinutes));
    this.#receiver = new GpsReceiver(prng.fork('gps'), city);
    const [home, work] = [randomPlace(prng, city), randomPlace(prng, city)];
    this.#home = path?.start ?? home;
    this.#work = path?.end ?? work;
    this.#ebike = prng.chance(EBIKE_PROBABILITY) ? new EbikeBattery(prng.fork('e-bike')) : undefined;
    this.#chargesBelowPercent = prng.integer(4, 30);
    this.#parked = { place: this.#home, speedMetersPerSecond: 0, directionDegrees: 0 };
    const batteryPercent = script?.batteryPercent ?? initial?.batteryPercent ?? prng.integer(12, 100);
    this.battery = new LockBattery({ startMs, percent: batteryPercent, speedup: pace.batterySpeedup });
    this.#plannedUntilMs = startMs;
    this.initialState = {
      lockState: 'locked',
      batteryPercent,
      power: script?.power ?? initial?.power ?? randomPower(prng),
      ebikeVolts: this.#ebike?.volts ?? null,
      tetherState: 'detached',
      covered: true,
      skyOpen: true,
    };
    if (script !== undefined) this.#playScript(script);
  }

  nextAtMs(): number {
    if (this.#nextPlannedMs < 0) this.#nextPlannedMs = this.#nextPlanned()?.atMs ?? Number.POSITIVE_INFINITY;
    const batteryMs = this.battery.nextAtMs;
    return this.#nextPlannedMs <= batteryMs ? this.#nextPlannedMs : batteryMs;
  }

  takeEvent(): WorldEvent | undefined {
    const planned = this.#nextPlanned();
    const batteryMs = this.battery.nextAtMs;
    if (planned === undefined || batteryMs < planned.atMs)
      return { atMs: batteryMs, change: { type: 'battery', percent: this.battery.take() } };
    this.#takenCount += 1;
    this.#nextPlannedMs = -1;
    const { atMs, change } = planned;
    if (change.type === 'lock-state') this.battery.motorRan(atMs);
    if (change.type === 'battery') this.battery.set(change.percent, atMs);
    return planned;
  }

  fixAt(atMs: number): GpsFix {
    return this.#receiver.read(atMs, this.#motionAt(atMs));
  }

  trueFixAt(atMs: number): GpsFix {
    return exactFix(this.#city, this.#motionAt(atMs));
  }

  cellPositionAt(atMs: number): Position {
    return mastPositionOf(this.#city, this.#motionAt(atMs).place);
  }

  #motionAt(atMs: number): Motion {
    for (let index = this.#routes.length - 1; index >= 0; index--) {
      const route = this.#routes[index];
      if (route !== undefined && route.startMs <= atMs) return route.at(atMs);
    }
    return this.#parked;
  }

  #nextPlanned(): WorldEvent | undefined {
    if (this.#takenCount >= this.#events.length) this.#plan();
    return this.#events[this.#takenCount];
  }

  /** Plans until the end of the next ride. */
  #plan(): void {
    const { eventProbabilities, theftProbability } = this.#pace;
    const prng = this.#prng;
    this.#startNextPlan();
    const fromMs = this.#plannedUntilMs;
    let departure = this.#pattern.next(fromMs);
    while (this.#isAlreadyThere(departure.purpose)) departure = this.#pattern.next(departure.atMs);
    let departMs = departure.atMs;
    this.#addEpisode(parked(prng, fromMs, departMs, eventProbabilities));
    this.#planCharging(fromMs, departMs);
    if (prng.chance(theftProbability)) {
      // The theft comes after all other events of the parking period. The owner finds the bicycle some time later.
      const to = onStreet(this.#city, placeAlong(this.#place(), prng.between(0, 360), prng.between(300, 3000)));
      const episode = theft(prng, { city: this.#city, from: this.#place(), to, startMs: departMs });
      this.#addEpisode(episode);
      departMs = Math.round(episode.endMs + prng.between(Minutes(20), Hours(3)));
    }
    this.#ride(departMs, departure.purpose);
  }

  /** Whether the bicycle is already at the destination. */
  #isAlreadyThere(purpose: TripPurpose): boolean {
    if (this.#isRoundTrip()) return false;
    const place = this.#place();
    return purpose === 'home' ? isSamePlace(place, this.#home) : purpose === 'work' && isSamePlace(place, this.#work);
  }

  /** Whether the user's own path ends where it starts. */
  #isRoundTrip(): boolean {
    return this.#path !== undefined && metersBetween(this.#path.start, this.#path.end) < SAME_PLACE_METERS;
  }

  #playScript({ events, endsAfterMs }: DemoScript): void {
    const startMs = this.#plannedUntilMs;
    for (const scriptedEvent of events) {
      const atMs = startMs + scriptedEvent.afterMs;
      if (scriptedEvent.type === 'ride') this.#ride(atMs, 'any');
      else if (scriptedEvent.type === 'theft') {
        const away = placeAlong(this.#place(), this.#prng.between(0, 360), SCRIPTED_THEFT_METERS);
        const to = onStreet(this.#city, away);
        this.#addEpisode(theft(this.#prng, { city: this.#city, from: this.#place(), to, startMs: atMs }));
      } else this.#addEvent(atMs, scriptedEvent.change);
    }
    this.#sort();
    this.#plannedUntilMs = Math.max(this.#plannedUntilMs, startMs + endsAfterMs);
  }

  #ride(startMs: number, purpose: TripPurpose): void {
    const episode = ride(
      this.#prng,
      startMs,
      this.#path === undefined ? this.#routeThroughStreets(purpose) : this.#routeAlongPath(purpose),
    );
    if (this.#ebike !== undefined && episode.route !== undefined) {
      this.#ebike.drainFor(episode.route.meters);
      this.#addEvent(episode.endMs, { type: 'ebike', volts: this.#ebike.volts });
    }
    this.#addEpisode(episode);
  }

  /** A route through the streets. */
  #routeThroughStreets(purpose: TripPurpose): RouteMaker {
    const [prng, city, from] = [this.#prng, this.#city, this.#place()];
    const isOut = purpose === 'out' || (purpose === 'any' && prng.chance(0.25));
    const goesHome = purpose === 'home' || (purpose === 'any' && !isSamePlace(from, this.#home));
    const to = isOut ? randomPlace(prng, city) : goesHome ? this.#home : this.#work;
    return (startMs, speedMetersPerSecond) => {
      return new StreetRoute(prng, { city, from, to, startMs, speedMetersPerSecond });
    };
  }

  /** A route along the user's path, or through the streets to the start of that path. */
  #routeAlongPath(purpose: TripPurpose): RouteMaker {
    const [path, from] = [this.#path, this.#place()];
    const isBack = this.#isRoundTrip() ? purpose === 'home' : isSamePlace(from, this.#work);
    const isAtEnd = isSamePlace(from, this.#home) || isSamePlace(from, this.#work);
    if (path === undefined || !isAtEnd) return this.#routeThroughStreets('home');
    return (startMs, speedMetersPerSecond) => path.ride({ startMs, speedMetersPerSecond, isBack });
  }

  /** Discards the events and routes of the previous plan. */
  #startNextPlan(): void {
    this.#parked = this.#routes.at(-1)?.end ?? this.#parked;
    this.#routes = [];
    this.#events = [];
    this.#takenCount = 0;
  }

  #place(): Place {
    return (this.#routes.at(-1)?.end ?? this.#parked).place;
  }

  #addEpisode(episode: Episode): void {
    this.#events.push(...episode.events);
    this.#sort();
    if (episode.route !== undefined) this.#routes.push(episode.route);
    this.#plannedUntilMs = Math.max(this.#plannedUntilMs, episode.endMs);
  }

  #addEvent(atMs: number, change: WorldChange): void {
    this.#events.push({ atMs: Math.round(atMs), change });
  }

  #sort(): void {
    sortByTime(this.#events);
  }

  /**
   * Plans to charge a low battery while the bicycle is parked, from an eighth of that period on and until shortly
   * before its end, unless the rider forgets.
   */
  #planCharging(startMs: number, endMs: number): void {
    // Drawn in any case, so that the state of the battery does not shift later random draws.
    const forgets = this.#prng.chance(FORGETTING_PROBABILITY);
    const { percent } = this.battery;
    if (percent >= this.#chargesBelowPercent || (forgets && percent > ALWAYS_CHARGED_PERCENT)) return;
    const span = endMs - startMs;
    this.battery.chargeBetween(Math.round(startMs + span / 8), Math.round(endMs - Math.min(span / 8, Seconds(30))));
  }
}

function isSamePlace(a: Place, b: Place): boolean {
  return a.eastMeters === b.eastMeters && a.northMeters === b.northMeters;
}

function metersBetween(a: Place, b: Place): number {
  const [east, north] = [b.eastMeters - a.eastMeters, b.northMeters - a.northMeters];
  return Math.sqrt(east * east + north * north);
}

/**
 * A random place, on a street if the city has them. The square root makes places equally dense near the middle and at
 * the outskirts.
 */
function randomPlace(prng: Prng, city: City): Place {
  const middle: Place = { eastMeters: 0, northMeters: 0 };
  return onStreet(city, placeAlong(middle, prng.between(0, 360), city.radiusMeters * Math.sqrt(prng.fraction())));
}

/** Random settings: most locks are in MID, some in HIGH, and a few in recovery. */
function randomPower(prng: Prng): PowerSettings {
  return {
    mode: prng.chance(0.2) ? 'HIGH' : 'MID',
    rideTracking: prng.chance(0.3),
    airplane: DEFAULT_POWER.airplane,
    recovery: prng.chance(0.02),
  };
}
