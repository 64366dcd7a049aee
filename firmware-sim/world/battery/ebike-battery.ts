/**
 * The battery of an e-bike, for simulated worlds. The motor of the bicycle drains it with the distance ridden; the
 * rider charges it between rides, once little is left. The lock only measures its voltage. Random only by the given
 * `prng`.
 */
import type { Prng } from '../../prng.js';

/** 36 V and 14 Ah, as in many city e-bikes. */
const CAPACITY_WH = 500;
/** The motor's consumption per kilometre in a city: a range of 40 to 80 km, as makers state it. */
const WH_PER_KM = [6, 12] as const;
/** Ten lithium cells in series have 30 V when empty and 42 V when full. */
const EMPTY_VOLTS = 30;
const FULL_VOLTS = 42;
/** Below this charge (0…1) the rider recharges the battery before the next ride. */
const RECHARGE_BELOW = 0.25;
/** Batteries start somewhere between this charge and full, so that not all of a fleet are recharged at once. */
const MIN_FIRST_CHARGE = 0.4;

/** See the top of this file. */
export class EbikeBattery {
  readonly #whPerKm: number;
  /** From 0 (empty) to 1 (full). */
  #charge: number;

  constructor(prng: Prng) {
    this.#charge = prng.between(MIN_FIRST_CHARGE, 1);
    this.#whPerKm = prng.between(...WH_PER_KM);
  }

  /** The open-circuit voltage, to a tenth of a volt. */
  get volts(): number {
    return Math.round((EMPTY_VOLTS + (FULL_VOLTS - EMPTY_VOLTS) * this.#charge) * 10) / 10;
  }

  /** Drains the battery for a ride of this distance. Once the battery is empty, the rider rides without the motor. */
  drainFor(meters: number): void {
    if (this.#charge < RECHARGE_BELOW) this.#charge = 1;
    this.#charge = Math.max(0, this.#charge - ((meters / 1000) * this.#whPerKm) / CAPACITY_WH);
  }
}
