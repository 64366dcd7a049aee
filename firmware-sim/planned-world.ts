/**
 * The life of a bicycle and its person, made up from a seed: parked, ridden, stolen now and then and found again. It is
 * planned one chapter ahead, so that a year costs no memory.
 */
import { Hours, Minutes } from '../proto/clock.js';
import { DEFAULT_POWER, type Position, type PowerSettings } from '../proto/ping.js';
import type { GpsFix } from '../proto/power-step-io.js';
import { type Chapter, parked, ride, theft } from './chapter.js';
import { type City, type Place, placeAlong, positionOf } from './city.js';
import type { Opening } from './opening.js';
import type { Pace } from './pace.js';
import type { Prng } from './prng.js';
import type { Motion, Route } from './route.js';
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

export class PlannedWorld implements World {
  readonly beginning: WorldBeginning;
  readonly #prng: Prng;
  readonly #city: City;
  readonly #pace: Pace;
  /** Where the person goes to and fro. */
  readonly #home: Place;
  readonly #work: Place;
  readonly #hasEbike: boolean;
  readonly #chargesBelowPercent: number;
  #events: WorldEvent[] = [];
  #taken = 0;
  /** Until when all is planned. */
  #untilMs: number;
  /** The ways of the chapter, and where the bicycle stood before. */
  #routes: Route[] = [];
  #stood: Motion;
  #batteryPercent: number;
  #drainedUntilMs: number;
  #ebikeCharge: number;

  constructor({ prng, city, pace, startMs, opening, begins }: PlannedWorldOptions) {
    this.#prng = prng;
    this.#city = city;
    this.#pace = pace;
    this.#home = somewhere(prng, city);
    this.#work = somewhere(prng, city);
    this.#hasEbike = prng.chance(0.4);
    this.#chargesBelowPercent = prng.whole(4, 30);
    this.#stood = { place: this.#home, speedMetersPerSecond: 0, directionDegrees: 0 };
    this.#batteryPercent = opening?.batteryPercent ?? begins?.batteryPercent ?? prng.whole(35, 100);
    this.#ebikeCharge = prng.between(0.4, 1);
    this.#untilMs = startMs;
    this.#drainedUntilMs = startMs;
    this.beginning = {
      lockState: 'locked',
      batteryPercent: this.#batteryPercent,
      power: opening?.power ?? begins?.power ?? somePower(prng),
      ebikeVolts: this.#ebikeVolts(),
      tetherState: 'detached',
      covered: true,
      skyOpen: true,
    };
    if (opening !== undefined) this.#play(opening);
  }

  nextAtMs(): number {
    if (this.#taken >= this.#events.length) this.#plan();
    return this.#events[this.#taken]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  take(): WorldEvent | undefined {
    if (this.#taken >= this.#events.length) this.#plan();
    return this.#events[this.#taken++];
  }

  fixAt(atMs: number): GpsFix {
    const { place, speedMetersPerSecond, directionDegrees } = this.#motionAt(atMs);
    // How well the sky is seen changes from street to street, not from one moment to the next.
    const uncertaintyMeters = 4 + (Math.abs(place.eastMeters + place.northMeters) % 11);
    return {
      position: positionOf(this.#city, place, uncertaintyMeters),
      speedMetersPerSecond: toHundredths(speedMetersPerSecond),
      directionDegrees: toHundredths(directionDegrees) % 360,
    };
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

  /** Plans until the end of the next ride. */
  #plan(): void {
    const { chances, departsMs, theft: theftChance } = this.#pace;
    const prng = this.#prng;
    this.#turnPage();
    const fromMs = this.#untilMs;
    let departMs = departsMs(prng, fromMs);
    this.#add(parked(prng, fromMs, departMs, chances));
    this.#charges(fromMs, departMs);
    if (prng.chance(theftChance)) {
      // The thief comes when all else is over, and the owner finds the bicycle some time after.
      const to = placeAlong(this.#place(), prng.between(0, 360), prng.between(300, 3000));
      const chapter = theft(prng, { city: this.#city, from: this.#place(), to, startMs: departMs });
      this.#add(chapter);
      departMs = Math.round(chapter.endMs + prng.between(Minutes(20), Hours(3)));
    }
    this.#ride(departMs);
  }

  #play({ scenes, endsAfterMs }: Opening): void {
    const startMs = this.#untilMs;
    for (const scene of scenes) {
      const atMs = startMs + scene.afterMs;
      if (scene.type === 'ride') this.#ride(atMs);
      else if (scene.type === 'theft') {
        const to = placeAlong(this.#place(), this.#prng.between(0, 360), 1200);
        this.#add(theft(this.#prng, { city: this.#city, from: this.#place(), to, startMs: atMs }));
      } else {
        if (scene.change.type === 'battery') this.#batteryPercent = scene.change.percent;
        this.#push(atMs, scene.change);
      }
    }
    this.#sort();
    this.#untilMs = Math.max(this.#untilMs, startMs + endsAfterMs);
    this.#drainedUntilMs = this.#untilMs;
  }

  #ride(startMs: number): void {
    const prng = this.#prng;
    const from = this.#place();
    const goal = prng.chance(0.25) ? somewhere(prng, this.#city) : from === this.#home ? this.#work : this.#home;
    const chapter = ride(prng, { city: this.#city, from, to: goal, startMs });
    this.#drains(startMs, chapter.endMs);
    this.#add(chapter);
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

  /** The battery of the lock, and of the bicycle, after a ride. */
  #drains(startMs: number, endMs: number): void {
    const { batteryPercentPerHour, batteryPercentPerRide } = this.#pace;
    const hours = Math.max(0, endMs - this.#drainedUntilMs) / Hours(1);
    const before = Math.floor(this.#batteryPercent);
    this.#batteryPercent = Math.max(1, this.#batteryPercent - hours * batteryPercentPerHour - batteryPercentPerRide);
    this.#drainedUntilMs = endMs;
    const after = Math.floor(this.#batteryPercent);
    if (after !== before) this.#push((startMs + endMs) / 2, { type: 'battery', percent: after });
    if (!this.#hasEbike) return;
    this.#ebikeCharge = this.#ebikeCharge < 0.25 ? 1 : this.#ebikeCharge - this.#prng.between(0.02, 0.08);
    this.#push(endMs, { type: 'ebike', volts: this.#ebikeVolts() });
  }

  /** Whoever sees that the battery is low charges it while the bicycle stands, unless they forget. */
  #charges(startMs: number, endMs: number): void {
    if (this.#batteryPercent >= this.#chargesBelowPercent || this.#prng.chance(0.3)) return;
    const stepMs = (endMs - startMs) / 8;
    for (let step = 1; step <= 4; step++) {
      const left = 100 - this.#batteryPercent;
      this.#batteryPercent = step === 4 ? 100 : this.#batteryPercent + left / 3;
      this.#push(startMs + step * stepMs, { type: 'battery', percent: Math.floor(this.#batteryPercent) });
    }
    this.#sort();
  }

  /** A 36 V battery has 30 V when it is empty and 42 V when it is full. */
  #ebikeVolts(): number | null {
    return this.#hasEbike ? Math.round((30 + 12 * this.#ebikeCharge) * 10) / 10 : null;
  }
}

/** What the wire carries of speed and direction. */
function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
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
