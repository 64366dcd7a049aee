/**
 * Token buckets: budgets that refill at a steady rate up to their burst. The level is the number of tokens left. A cost
 * above the burst is granted when the bucket is full and makes the level negative, so that no request is refused for
 * ever. Work that is already done can be charged afterwards, and may also make the level negative.
 */
import type { Clock, Milliseconds } from '../../proto/clock.js';
import type { Rate } from './fairness-settings.js';

class TokenBucket {
  #level: number;
  #filledAtMs: number;

  constructor({ burst }: Rate, nowMs: number) {
    this.#level = burst;
    this.#filledAtMs = nowMs;
  }

  /** Takes `cost` if the bucket has it. Returns 0 if taken, otherwise how long until the bucket has it, in ms. */
  take(cost: number, rate: Rate, nowMs: number): Milliseconds {
    this.#fill(rate, nowMs);
    const missing = Math.min(cost, rate.burst) - this.#level;
    if (missing > 0) return (missing / rate.perSecond) * 1000;
    this.#level -= cost;
    return 0;
  }

  /** Takes `cost` unconditionally. */
  charge(cost: number, rate: Rate, nowMs: number): void {
    this.#fill(rate, nowMs);
    this.#level -= cost;
  }

  isFull(rate: Rate, nowMs: number): boolean {
    this.#fill(rate, nowMs);
    return this.#level >= rate.burst;
  }

  #fill({ perSecond, burst }: Rate, nowMs: number): void {
    const passedSeconds = Math.max(nowMs - this.#filledAtMs, 0) / 1000;
    this.#filledAtMs = nowMs;
    this.#level = Math.min(this.#level + passedSeconds * perSecond, burst);
  }
}

/**
 * Maximum number of buckets in memory. Full buckets are dropped first, since a new bucket is full too; then the oldest.
 */
const MAX_BUCKETS = 50_000;
/** How many of the oldest buckets are examined when a new one is added. */
const EXAMINED_BUCKETS = 16;

/** A bucket for each merchant or address. */
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

  /** Takes `cost` if the bucket has it. Returns 0 if taken, otherwise how long until the bucket has it, in ms. */
  take(name: string, cost: number): Milliseconds {
    if (this.#rate.perSecond === Number.POSITIVE_INFINITY) return 0;
    const nowMs = this.#clock.now();
    return this.#bucket(name, nowMs).take(cost, this.#rate, nowMs);
  }

  /** Takes `cost` unconditionally; the level may become negative. */
  charge(name: string, cost: number): void {
    if (this.#rate.perSecond === Number.POSITIVE_INFINITY) return;
    const nowMs = this.#clock.now();
    this.#bucket(name, nowMs).charge(cost, this.#rate, nowMs);
  }

  #bucket(name: string, nowMs: number): TokenBucket {
    const known = this.#buckets.get(name);
    if (known !== undefined) return known;
    this.#makeRoom(nowMs);
    const bucket = new TokenBucket(this.#rate, nowMs);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** Drops full buckets among the oldest; at the limit, drops all buckets that it examines. */
  #makeRoom(nowMs: number): void {
    let examined = 0;
    for (const [name, bucket] of this.#buckets) {
      if (examined === EXAMINED_BUCKETS) break;
      examined += 1;
      if (bucket.isFull(this.#rate, nowMs) || this.#buckets.size >= MAX_BUCKETS) this.#buckets.delete(name);
    }
  }
}
