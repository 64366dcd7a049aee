/**
 * A GPS receiver: turns the true place into a fix with an error, and states the uncertainty. The error drifts slowly,
 * like the error of real receivers.
 *
 * The uncertainty is the radius that contains the true place in 95 % of the fixes. The error is normally distributed to
 * the east and to the north, so this radius is √(−2 ln 0.05) = 2.45 times the standard deviation. Nine tenths of the
 * variance drift with a memory of about a minute; one tenth is independent noise in each fix.
 */
import { Seconds } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Prng } from '../prng.js';
import { type City, type Place, positionOf } from './routes/city.js';
import type { Motion } from './routes/route.js';

/** √(−2 ln 0.05): the radius that contains 95 % of a two-dimensional normal error, in standard deviations. */
const RADIUS_95 = 2.447746830680816;
/** Of a drift error half is left if the receiver is next read after this time; less if it is read in between. */
const DRIFT_MEMORY_MS = Seconds(60);
/** Weights of drift and noise in the error. The sum of their squares, the variances, is 1. */
const DRIFT_WEIGHT = Math.sqrt(0.9);
const NOISE_WEIGHT = Math.sqrt(0.1);
/** Below this speed a receiver reports speed 0, and repeats its last direction. */
const MIN_METERS_PER_SECOND = 0.3;
/**
 * Standard deviation of the measured speed at {@link REFERENCE_UNCERTAINTY_METERS}; proportional to the uncertainty.
 */
const DEVIATION_METERS_PER_SECOND = 0.15;
const REFERENCE_UNCERTAINTY_METERS = 6;
/** The city is divided into squares with this side; all buildings of a square have the same height. */
const SQUARE_METERS = 180;

/** See the top of this file. */
export class GpsReceiver {
  readonly #prng: Prng;
  readonly #city: City;
  #lastMs = Number.NEGATIVE_INFINITY;
  #eastDrift = 0;
  #northDrift = 0;
  #directionDegrees = 0;

  /** @param prng used only by this receiver, so that the number of readings changes nothing else */
  constructor(prng: Prng, city: City) {
    this.#prng = prng;
    this.#city = city;
  }

  /** The fix at this moment. Callers must not go back in time. */
  read(atMs: number, { place, speedMetersPerSecond, directionDegrees }: Motion): GpsFix {
    this.#updateDrift(atMs);
    const uncertainty = uncertaintyAt(place);
    const deviation = uncertainty / RADIUS_95;
    const errorMeters = (drift: number): number => deviation * (DRIFT_WEIGHT * drift + NOISE_WEIGHT * this.#normal());
    const measuredPlace = {
      eastMeters: place.eastMeters + errorMeters(this.#eastDrift),
      northMeters: place.northMeters + errorMeters(this.#northDrift),
    };
    const speedError = (DEVIATION_METERS_PER_SECOND * uncertainty * this.#normal()) / REFERENCE_UNCERTAINTY_METERS;
    // An equal velocity error across the direction of travel changes the direction.
    const crossError = (DEVIATION_METERS_PER_SECOND * uncertainty * this.#normal()) / REFERENCE_UNCERTAINTY_METERS;
    const isStanding = speedMetersPerSecond < MIN_METERS_PER_SECOND;
    if (!isStanding)
      this.#directionDegrees = directionDegrees + clamp((crossError / speedMetersPerSecond) * (180 / Math.PI), 90);
    return {
      position: positionOf(this.#city, measuredPlace, uncertainty),
      speedMetersPerSecond: isStanding ? 0 : toHundredths(Math.max(0, speedMetersPerSecond + speedError)),
      directionDegrees: withinCircle(toHundredths(withinCircle(this.#directionDegrees + 360))),
    };
  }

  /** Decays the drift with time and adds as much new error, so that its variance stays the same. */
  #updateDrift(atMs: number): void {
    const retainedShare = 1 / (1 + (atMs - this.#lastMs) / DRIFT_MEMORY_MS);
    const newShare = Math.sqrt(1 - retainedShare * retainedShare);
    this.#eastDrift = retainedShare * this.#eastDrift + newShare * this.#normal();
    this.#northDrift = retainedShare * this.#northDrift + newShare * this.#normal();
    this.#lastMs = atMs;
  }

  /**
   * An approximately normal number: the sum of six uniform 16-bit numbers, exact on every machine unlike a logarithm.
   */
  #normal(): number {
    let sum = 0;
    for (let drawn = 0; drawn < 3; drawn++) {
      const bits = this.#prng.uint32();
      sum += (bits & 0xffff) + (bits >>> 16);
    }
    // Each of the six numbers has the mean 1/2 and the variance 1/12, so their sum has the mean 3 and the variance 1/2.
    return (sum / 0xffff - 3) * Math.SQRT2;
  }
}

/** A fix without error: the true position, for observers. */
export function exactFix(city: City, { place, speedMetersPerSecond, directionDegrees }: Motion): GpsFix {
  return {
    position: positionOf(city, place, 0),
    speedMetersPerSecond: toHundredths(speedMetersPerSecond),
    directionDegrees: toHundredths(directionDegrees) % 360,
  };
}

/**
 * The uncertainty at a place, in whole metres as in the wire format. It depends on the buildings, which are the same
 * for every lock: 4 to 8 m in three of four squares of a city, 10 to 30 m in the fourth, which has tall buildings.
 */
function uncertaintyAt({ eastMeters, northMeters }: Place): number {
  const height = hashToFraction(Math.floor(eastMeters / SQUARE_METERS), Math.floor(northMeters / SQUARE_METERS));
  return Math.round(height < 0.75 ? 4 + height * 5 : 10 + (height - 0.75) * 80);
}

/** A pseudo-random number in [0, 1) that depends on two integers. The constants are those of a common hash function. */
function hashToFraction(x: number, y: number): number {
  let mixed = Math.imul(x, 0x9e3779b1) ^ Math.imul(y, 0x85ebca77);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x297a2d39);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
}

/** The same as `degrees % 360` for degrees from 0 on. `%` on decimals would take a large part of a reading's time. */
function withinCircle(degrees: number): number {
  if (degrees < 360) return degrees;
  return degrees < 720 ? degrees - 360 : degrees % 360;
}

function clamp(value: number, limit: number): number {
  return Math.min(limit, Math.max(-limit, value));
}

/** Rounds to hundredths, the resolution of speed and direction in the wire format. */
function toHundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
