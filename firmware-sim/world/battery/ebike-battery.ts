/** The battery of an e-bike, which its motor drains with the distance ridden and its person charges over night. */
import type { Prng } from '../../prng.js';

/** 36 V and 14 Ah, as many city bicycles have. */
const CAPACITY_WH = 500;
/** What the motor takes for a kilometre in a city: a range of 40 to 80 km, as makers state it. */
const WH_PER_KM = [6, 12] as const;
/** Ten cells of lithium in a row have 30 V when they are empty and 42 V when they are full. */
const EMPTY_VOLTS = 30;
const FULL_VOLTS = 42;
/** Below this share it is charged before the next ride. */
const CHARGED_BELOW = 0.25;

export class EbikeBattery {
  readonly #whPerKm: number;
  #share: number;

  constructor(prng: Prng) {
    this.#share = prng.between(0.4, 1);
    this.#whPerKm = prng.between(...WH_PER_KM);
  }

  /** What it has at rest, to a tenth of a volt. */
  get volts(): number {
    return Math.round((EMPTY_VOLTS + (FULL_VOLTS - EMPTY_VOLTS) * this.#share) * 10) / 10;
  }

  /** So far is ridden; on what is left, if that is not enough, without the motor. */
  rides(meters: number): void {
    if (this.#share < CHARGED_BELOW) this.#share = 1;
    this.#share = Math.max(0, this.#share - ((meters / 1000) * this.#whPerKm) / CAPACITY_WH);
  }
}
