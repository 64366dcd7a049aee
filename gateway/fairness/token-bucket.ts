/**
 * Token buckets: a budget that fills at a steady rate up to its burst. What costs more than the burst goes through when
 * the bucket is full, and leaves a debt behind, so that nothing is refused for ever. What has been done already can be
 * charged afterwards, and leaves a debt too.
 */
import type { Clock, Milliseconds } from '../../proto/clock.js';
import type { Rate } from './fairness-settings.js';

class TokenBucket {
  #level: number;
  #atMs: number;

  constructor({ burst }: Rate, nowMs: number) {
    this.#level = burst;
    this.#atMs = nowMs;
  }

  /** Takes `cost` where it is there. Returns how long to wait for it, in ms, where it is not; 0 where it was taken. */
  take(cost: number, rate: Rate, nowMs: number): Milliseconds {
    this.#fill(rate, nowMs);
    const missing = Math.min(cost, rate.burst) - this.#level;
    if (missing > 0) return (missing / rate.perSecond) * 1000;
    this.#level -= cost;
    return 0;
  }

  /** Takes `cost` in any case. */
  charge(cost: number, rate: Rate, nowMs: number): void {
    this.#fill(rate, nowMs);
    this.#level -= cost;
  }

  isFull(rate: Rate, nowMs: number): boolean {
    this.#fill(rate, nowMs);
    return this.#level >= rate.burst;
  }

  #fill({ perSecond, burst }: Rate, nowMs: number): void {
    const passed = Math.max(nowMs - this.#atMs, 0) / 1000;
    this.#atMs = nowMs;
    this.#level = Math.min(this.#level + passed * perSecond, burst);
  }
}

/** Buckets that are remembered. One that is full says nothing, and is forgotten first; then the oldest. */
const REMEMBERED = 50_000;
/** Buckets that are looked at for room when a new one comes. */
const LOOKED_AT = 16;

/** A bucket for each name: a merchant, an address. */
export class TokenBuckets {
  readonly #rate: Rate;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, TokenBucket>();

  /** @param clock monotonic */
  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
  }

  get rate(): Rate {
    return this.#rate;
  }

  /** Takes `cost` where it is there. Returns how long to wait for it, in ms, where it is not; 0 where it was taken. */
  take(name: string, cost: number): Milliseconds {
    if (this.#rate.perSecond === Number.POSITIVE_INFINITY) return 0;
    const nowMs = this.#clock.now();
    return this.#bucket(name, nowMs).take(cost, this.#rate, nowMs);
  }

  /** Takes `cost` in any case: what is there afterwards may be less than nothing. */
  charge(name: string, cost: number): void {
    if (this.#rate.perSecond === Number.POSITIVE_INFINITY) return;
    const nowMs = this.#clock.now();
    this.#bucket(name, nowMs).charge(cost, this.#rate, nowMs);
  }

  #bucket(name: string, nowMs: number): TokenBucket {
    const known = this.#buckets.get(name);
    if (known !== undefined) return known;
    this.#makeRoom(nowMs);
    const made = new TokenBucket(this.#rate, nowMs);
    this.#buckets.set(name, made);
    return made;
  }

  /** Some of the oldest go where they are full, and one in any case where there are too many. */
  #makeRoom(nowMs: number): void {
    let looked = 0;
    for (const [name, bucket] of this.#buckets) {
      if (looked === LOOKED_AT) break;
      looked += 1;
      if (bucket.isFull(this.#rate, nowMs) || this.#buckets.size >= REMEMBERED) this.#buckets.delete(name);
    }
  }
}
