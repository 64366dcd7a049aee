/**
 * What a GPS receiver makes of where it is: a fix with an error that wanders about slowly, as that of real ones does,
 * and an uncertainty that says how large the error may be.
 *
 * The uncertainty is the radius within which the true place lies in 95 % of the fixes. The error is normal in each of
 * its two directions, so that this radius is √(−2 ln 0.05) = 2.45 times their standard deviation. Nine tenths of its
 * variance wander, with a memory of about a minute; one tenth is new with each fix.
 */
import { Seconds } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Prng } from '../prng.js';
import { type City, type Place, positionOf } from '../world/routes/city.js';
import type { Motion } from '../world/routes/route.js';

/** √(−2 ln 0.05): of a normal error in two directions, the radius that holds 95 %, in standard deviations. */
const RADIUS_95 = 2.447746830680816;
/** After this time about half of an error is left. */
const WANDERS_FOR = Seconds(60);
/** Shares of the variance; their sum is 1. */
const WANDERING = Math.sqrt(0.9);
const NEW_EACH_TIME = Math.sqrt(0.1);
/** Below, a receiver takes itself to stand: it tells no speed, and the direction of before. */
const STANDS_BELOW = 0.3;
/** Of the speed, m/s, where the uncertainty is {@link USUAL_METERS}; it grows with it. */
const SPEED_DEVIATION = 0.15;
const USUAL_METERS = 6;
/** The side of the squares of a city that have the same houses. */
const SQUARE_METERS = 180;

export class GpsReceiver {
  readonly #prng: Prng;
  readonly #city: City;
  #lastMs = Number.NEGATIVE_INFINITY;
  #east = 0;
  #north = 0;
  #directionDegrees = 0;

  /** @param prng its own: how often it is asked must not change anything else */
  constructor(prng: Prng, city: City) {
    this.#prng = prng;
    this.#city = city;
  }

  /** What it reads. Moments never go back. */
  read(atMs: number, { place, speedMetersPerSecond, directionDegrees }: Motion): GpsFix {
    this.#wander(atMs);
    const uncertainty = uncertaintyAt(place);
    const deviation = uncertainty / RADIUS_95;
    const off = (wandering: number): number => deviation * (WANDERING * wandering + NEW_EACH_TIME * this.#normal());
    const seen = { eastMeters: place.eastMeters + off(this.#east), northMeters: place.northMeters + off(this.#north) };
    const speedOff = (SPEED_DEVIATION * uncertainty * this.#normal()) / USUAL_METERS;
    // The same error of the velocity, across the way, turns the direction.
    const radiansOff = (SPEED_DEVIATION * uncertainty * this.#normal()) / USUAL_METERS;
    const isStanding = speedMetersPerSecond < STANDS_BELOW;
    if (!isStanding)
      this.#directionDegrees = directionDegrees + clamp((radiansOff / speedMetersPerSecond) * (180 / Math.PI), 90);
    return {
      position: positionOf(this.#city, seen, uncertainty),
      speedMetersPerSecond: isStanding ? 0 : toHundredths(Math.max(0, speedMetersPerSecond + speedOff)),
      directionDegrees: toHundredths((this.#directionDegrees + 360) % 360) % 360,
    };
  }

  /** What is left of the error fades with time and makes room for what is new, so that it stays as large as it is. */
  #wander(atMs: number): void {
    const kept = 1 / (1 + (atMs - this.#lastMs) / WANDERS_FOR);
    const fresh = Math.sqrt(1 - kept * kept);
    this.#east = kept * this.#east + fresh * this.#normal();
    this.#north = kept * this.#north + fresh * this.#normal();
    this.#lastMs = atMs;
  }

  /** Nearly normal, by the sum of six even shares of 16 bits: exact on every machine, which a logarithm is not. */
  #normal(): number {
    let sum = 0;
    for (let drawn = 0; drawn < 3; drawn++) {
      const bits = this.#prng.uint32();
      sum += (bits & 0xffff) + (bits >>> 16);
    }
    // Each share has a variance of a twelfth.
    return (sum / 0xffff - 3) * Math.SQRT2;
  }
}

/** What is there, without error: for those who know. */
export function exactFix(city: City, { place, speedMetersPerSecond, directionDegrees }: Motion): GpsFix {
  return {
    position: positionOf(city, place, 0),
    speedMetersPerSecond: toHundredths(speedMetersPerSecond),
    directionDegrees: toHundredths(directionDegrees) % 360,
  };
}

/**
 * Whole metres, as the wire carries. It is the houses that make the difference, the same for every lock: most squares
 * of a city have 4 to 8 m, one in four has high houses and up to 30 m.
 */
function uncertaintyAt({ eastMeters, northMeters }: Place): number {
  const height = shareOf(Math.floor(eastMeters / SQUARE_METERS), Math.floor(northMeters / SQUARE_METERS));
  return Math.round(height < 0.75 ? 4 + height * 5 : 10 + (height - 0.75) * 80);
}

/** A share in [0, 1) that looks drawn, of two whole numbers. */
function shareOf(one: number, other: number): number {
  let mixed = Math.imul(one, 0x9e3779b1) ^ Math.imul(other, 0x85ebca77);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
}

function clamp(value: number, most: number): number {
  return Math.min(most, Math.max(-most, value));
}

/** What the wire carries of speed and direction. */
function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
