/**
 * How much one lock may send (interfaces.md §2, "Fairness"): a rate with a burst, and a number per day. An attacker
 * with the lock's secret can store no more than that, and a lock that behaves never comes near it.
 *
 * Both limits are token buckets. The daily one holds a day's worth and refills within a day. A lock that has used it up
 * is read at the rate at which it refills, and never cut off for hours: an alarm still gets through.
 *
 * - *within*: everything that arrives is read.
 * - *spent*: one of the buckets is empty. Nothing more is read from the lock's connections until there is a token
 *   again. What one read brought is all taken, so a bucket may be overdrawn, and the wait is longer accordingly.
 * - *over*: it was spent within the last minute. This is what operators see, since a lock that keeps flooding changes
 *   between spent and not spent many times a second.
 */
import { type Clock, Days, type Milliseconds, Minutes, Seconds, type Timer } from '../../../proto/clock.js';
import type { Sender } from '../../ingest/ingest.js';

/** The limits of a lock, and the same again for all its phones together. */
export interface BudgetLimits {
  /** The sustained rate; 0 for no limit of this kind. */
  readonly uplinksPerSecond: number;
  /** How many may arrive at once. */
  readonly burstUplinks: number;
  /** 0 for no limit of this kind. */
  readonly uplinksPerDay: number;
}

/** Which of the limits was reached. */
export type BudgetLimit = 'rate' | 'day';

/** A connection that is not read while the budget is spent. */
export interface HeldConnection {
  /** The budget may have refilled: check again. */
  readOn(): void;
}

export interface BudgetWatcher {
  /** The run's clock, ms since the epoch. */
  now(): number;
  /** The lock is over its budget, or is now over the daily limit too. */
  over(budget: UplinkBudget): void;
  /** The lock is within its budget again. */
  within(budget: UplinkBudget): void;
}

/** How long a budget must not be spent to count as within again. */
export const WITHIN_AFTER: Milliseconds = Minutes(1);
/** The shortest wait for tokens: bounds how often a flooding lock's budget is checked. */
const SHORTEST_WAIT: Milliseconds = 50;

/** A bucket of tokens; it may be overdrawn. */
class TokenBucket {
  readonly #capacity: number;
  readonly #perMs: number;
  #tokens: number;
  #asOfMs: number;

  constructor(most: number, perMs: number, nowMs: number) {
    this.#capacity = most;
    this.#perMs = perMs;
    this.#tokens = most;
    this.#asOfMs = nowMs;
  }

  take(count: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#tokens -= count;
  }

  /** How long until there is a token; 0 where there is one. */
  wait(nowMs: number): Milliseconds {
    this.#refill(nowMs);
    return this.#tokens >= 1 ? 0 : (1 - this.#tokens) / this.#perMs;
  }

  #refill(nowMs: number): void {
    this.#tokens = Math.min(this.#capacity, this.#tokens + (nowMs - this.#asOfMs) * this.#perMs);
    this.#asOfMs = nowMs;
  }
}

/** The budget of a lock, or of all phones that act for it. It outlives connections. */
export class UplinkBudget {
  readonly owner: Pick<Sender, 'deviceId' | 'mac' | 'source'>;
  /** The budget is spent: nothing more is to be read for now. */
  isSpent = false;
  /** Since when it is over, by the run's clock, and which limit; undefined where it is not over. */
  over: { readonly sinceMs: number; readonly limit: BudgetLimit } | undefined;
  readonly #clock: Clock;
  readonly #watcher: BudgetWatcher;
  readonly #rate: TokenBucket | undefined;
  readonly #day: TokenBucket | undefined;
  readonly #held = new Set<HeldConnection>();
  #timer: Timer | undefined;

  constructor(owner: UplinkBudget['owner'], limits: BudgetLimits, clock: Clock, watcher: BudgetWatcher) {
    const nowMs = clock.now();
    const { uplinksPerSecond, burstUplinks, uplinksPerDay } = limits;
    this.owner = owner;
    this.#clock = clock;
    this.#watcher = watcher;
    if (uplinksPerSecond > 0) this.#rate = new TokenBucket(burstUplinks, uplinksPerSecond / Seconds(1), nowMs);
    if (uplinksPerDay > 0) this.#day = new TokenBucket(uplinksPerDay, uplinksPerDay / Days(1), nowMs);
  }

  /** Counts uplinks that arrived. */
  take(count: number): void {
    const nowMs = this.#clock.now();
    this.#rate?.take(count, nowMs);
    this.#day?.take(count, nowMs);
    this.#update(nowMs);
  }

  /** Calls the connection's `readOn` once there are tokens again. */
  hold(connection: HeldConnection): void {
    this.#held.add(connection);
  }

  /** The connection has closed. */
  release(connection: HeldConnection): void {
    this.#held.delete(connection);
  }

  /** Cancels its timer. */
  stop(): void {
    this.#timer?.cancel();
    this.#held.clear();
  }

  #update(nowMs: number): void {
    const dayWait = this.#day?.wait(nowMs) ?? 0;
    const wait = Math.max(this.#rate?.wait(nowMs) ?? 0, dayWait);
    if (wait > 0) this.#spend(wait, dayWait > 0 ? 'day' : 'rate');
    else if (this.isSpent) this.#refilled();
  }

  #spend(wait: Milliseconds, limit: BudgetLimit): void {
    this.isSpent = true;
    const before = this.over;
    if (before === undefined || (limit === 'day' && before.limit === 'rate')) {
      this.over = { sinceMs: before?.sinceMs ?? this.#watcher.now(), limit };
      this.#watcher.over(this);
    }
    this.#after(Math.max(wait, SHORTEST_WAIT), () => this.#update(this.#clock.now()));
  }

  #refilled(): void {
    this.isSpent = false;
    this.#after(WITHIN_AFTER, () => {
      this.over = undefined;
      this.#watcher.within(this);
    });
    // A connection may spend the budget again at once: those after it stay on hold, and are first the next time.
    for (const connection of [...this.#held]) {
      if (this.isSpent) return;
      this.#held.delete(connection);
      connection.readOn();
    }
  }

  #after(wait: Milliseconds, callback: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(wait, callback);
  }
}
