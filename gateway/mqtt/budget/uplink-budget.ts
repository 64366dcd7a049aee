/**
 * Limits how many uplinks one lock may send (interfaces.md §2): a rate with a burst, and a number per day. An attacker
 * with the lock's secret can store no more than that; a lock that behaves normally never comes near.
 *
 * Both limits are token buckets. The daily bucket contains a day's worth and refills within a day. A lock that has used
 * up its daily bucket is read as fast as the bucket refills, not cut off for hours: an alarm still gets through.
 *
 * A budget is *within* or *spent*, and may be *over* at the same time:
 *
 * - *within*: everything that arrives is read.
 * - *spent*: one of the buckets is empty. Nothing more is read from the lock's connections until the bucket has a
 *   token. All uplinks of one read are accepted, so a bucket can become negative, which makes the wait longer.
 * - *over*: the budget was spent within the last minute. Operators see this state, since a flooding lock changes
 *   between spent and not spent many times a second.
 */
import { type Clock, Days, type Milliseconds, Minutes, Seconds, type Timer } from '../../../proto/clock.js';
import type { Sender } from '../../ingest/ingest.js';

/** The limits of a lock. The same limits apply separately to all its phones together. */
export interface BudgetLimits {
  /** The sustained rate; 0 for no limit of the rate. */
  readonly uplinksPerSecond: number;
  /** How many uplinks may arrive at once. */
  readonly burstUplinks: number;
  /** 0 for no daily limit. */
  readonly uplinksPerDay: number;
}

/** The limit that was reached. */
export type BudgetLimit = 'rate' | 'day';

/** A connection that is not read while the budget is spent. */
export interface HeldConnection {
  /** Called when the budget may have refilled. */
  updateReading(): void;
}

export interface BudgetWatcher {
  /** The run's clock (wall-clock time, except in a sped-up simulation), ms since the epoch. */
  now(): number;
  /** The lock exceeds its budget, or now also the daily limit. */
  over(budget: UplinkBudget): void;
  /** The lock is within its budget again. */
  within(budget: UplinkBudget): void;
}

/** A lock counts as within its budget when the budget was not spent for this long. */
export const WITHIN_BUDGET_AFTER: Milliseconds = Minutes(1);
/** The minimum wait for tokens: limits how often a flooding lock's budget is checked. */
const MIN_REFILL_WAIT: Milliseconds = 50;

/** A bucket of tokens. Its number of tokens may become negative. */
class TokenBucket {
  readonly #capacity: number;
  readonly #tokensPerMs: number;
  #tokens: number;
  #refilledAtMs: number;

  constructor(capacity: number, tokensPerMs: number, nowMs: number) {
    this.#capacity = capacity;
    this.#tokensPerMs = tokensPerMs;
    this.#tokens = capacity;
    this.#refilledAtMs = nowMs;
  }

  take(count: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#tokens -= count;
  }

  /** How long until the bucket has a token; 0 if it has one. */
  wait(nowMs: number): Milliseconds {
    this.#refill(nowMs);
    return this.#tokens >= 1 ? 0 : (1 - this.#tokens) / this.#tokensPerMs;
  }

  #refill(nowMs: number): void {
    this.#tokens = Math.min(this.#capacity, this.#tokens + (nowMs - this.#refilledAtMs) * this.#tokensPerMs);
    this.#refilledAtMs = nowMs;
  }
}

/** The budget of a lock, or of all phones that act for it. It outlives the lock's connections. */
export class UplinkBudget {
  readonly owner: Pick<Sender, 'deviceId' | 'mac' | 'source'>;
  /** Whether the budget is spent, so that nothing more may be read. */
  isSpent = false;
  /** Since when the budget is over, by the run's clock, and which limit; undefined if it is not over. */
  over: { readonly sinceMs: number; readonly limit: BudgetLimit } | undefined;
  readonly #clock: Clock;
  readonly #watcher: BudgetWatcher;
  readonly #rateBucket: TokenBucket | undefined;
  readonly #dayBucket: TokenBucket | undefined;
  readonly #held = new Set<HeldConnection>();
  #timer: Timer | undefined;

  /** @param clock measures how the buckets refill: monotonic, unlike the clock of `watcher` */
  constructor(owner: UplinkBudget['owner'], limits: BudgetLimits, clock: Clock, watcher: BudgetWatcher) {
    const nowMs = clock.now();
    const { uplinksPerSecond, burstUplinks, uplinksPerDay } = limits;
    this.owner = owner;
    this.#clock = clock;
    this.#watcher = watcher;
    if (uplinksPerSecond > 0) this.#rateBucket = new TokenBucket(burstUplinks, uplinksPerSecond / Seconds(1), nowMs);
    if (uplinksPerDay > 0) this.#dayBucket = new TokenBucket(uplinksPerDay, uplinksPerDay / Days(1), nowMs);
  }

  /** Counts uplinks that arrived. */
  take(count: number): void {
    const nowMs = this.#clock.now();
    this.#rateBucket?.take(count, nowMs);
    this.#dayBucket?.take(count, nowMs);
    this.#update(nowMs);
  }

  /** Calls the connection's `updateReading` once there are tokens again. */
  hold(connection: HeldConnection): void {
    this.#held.add(connection);
  }

  /** Must be called when the connection has closed. */
  release(connection: HeldConnection): void {
    this.#held.delete(connection);
  }

  /** Cancels the timer. */
  stop(): void {
    this.#timer?.cancel();
    this.#held.clear();
  }

  #update(nowMs: number): void {
    const dayWait = this.#dayBucket?.wait(nowMs) ?? 0;
    const wait = Math.max(this.#rateBucket?.wait(nowMs) ?? 0, dayWait);
    if (wait > 0) this.#spend(wait, dayWait > 0 ? 'day' : 'rate');
    else if (this.isSpent) this.#refilled();
  }

  /** Notes that the budget is spent, and sets a timer for the time when it has a token again. */
  #spend(wait: Milliseconds, limit: BudgetLimit): void {
    this.isSpent = true;
    const before = this.over;
    if (before === undefined || (limit === 'day' && before.limit === 'rate')) {
      this.over = { sinceMs: before?.sinceMs ?? this.#watcher.now(), limit };
      this.#watcher.over(this);
    }
    this.#after(Math.max(wait, MIN_REFILL_WAIT), () => this.#update(this.#clock.now()));
  }

  #refilled(): void {
    this.isSpent = false;
    this.#after(WITHIN_BUDGET_AFTER, () => {
      this.over = undefined;
      this.#watcher.within(this);
    });
    // A connection may spend the budget again at once. The connections after it then stay on hold and go first next
    // time.
    for (const connection of [...this.#held]) {
      if (this.isSpent) return;
      this.#held.delete(connection);
      connection.updateReading();
    }
  }

  #after(wait: Milliseconds, callback: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(wait, callback);
  }
}
