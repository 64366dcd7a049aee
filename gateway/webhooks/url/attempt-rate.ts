/**
 * Limits the rate at which attempts at a URL start. Attempts are spaced evenly; at high rates a few start together, so
 * that the worker need not wake for each. Reads no clock: times are arguments, by the delivery clock.
 */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';

/** The attempts that fall into this time at the URL's rate may start together. */
const BURST: Milliseconds = 50;

export class AttemptRate {
  readonly #perMs: number;
  readonly #capacity: number;
  #tokens: number;
  #atMs: number;

  constructor(attemptsPerSecond: number, nowMs: number) {
    this.#perMs = attemptsPerSecond / Seconds(1);
    this.#capacity = Math.max(1, Math.floor(this.#perMs * BURST));
    this.#tokens = 1;
    this.#atMs = nowMs;
  }

  /** How many attempts may start now. */
  free(nowMs: number): number {
    this.#refill(nowMs);
    // Sums of fractions may be a little below a whole number.
    return Math.floor(this.#tokens + 1e-9);
  }

  /** When the next attempt may start; not after `nowMs` if one may start now. */
  availableAtMs(nowMs: number): number {
    return this.free(nowMs) >= 1 ? nowMs : nowMs + Math.ceil((1 - this.#tokens) / this.#perMs);
  }

  /** Must be called when an attempt starts. */
  started(nowMs: number): void {
    this.#refill(nowMs);
    this.#tokens -= 1;
  }

  /** A clock that is set back adds nothing, and holds nothing up either. */
  #refill(nowMs: number): void {
    const passedMs = Math.max(nowMs - this.#atMs, 0);
    this.#atMs = nowMs;
    this.#tokens = Math.min(this.#tokens + passedMs * this.#perMs, this.#capacity);
  }
}
