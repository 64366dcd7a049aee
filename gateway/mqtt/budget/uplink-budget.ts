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

/** What all budgets share. */
export interface BudgetParts {
  readonly limits: BudgetLimits;
  /**
   * Measures how the buckets refill: it runs at the speed of the run, so that at 60 × speed a lock may send 60 times as
   * much (protocol.md §3, "Sped-up runs"), and it is monotonic, so that a change of the machine's clock neither fills
   * nor empties a budget.
   */
  readonly clock: Clock;
  readonly watcher: BudgetWatcher;
}

/** The budget of a lock, or of all phones that act for it. It outlives the lock's connections. */
export class UplinkBudget {
  readonly owner: Pick<Sender, 'deviceId' | 'mac' | 'source'>;
  /** Whether the budget is spent, so that nothing more may be read. */
  isSpent = false;
  /** Since when the budget is over, by the run's clock, and which limit; undefined if it is not over. */
  over: { readonly sinceMs: number; readonly limit: BudgetLimit } | undefined;
  readonly #parts: BudgetParts;
  /* The tokens of both buckets when they were last refilled: infinitely many if there is no such limit. */
  #rateTokens: number;
  #dayTokens: number;
  #refilledAtMs: number;
  /** Connections that are not read; created when the first is held, since nearly no lock is ever over its budget. */
  #held: Set<HeldConnection> | undefined;
  #timer: Timer | undefined;

  constructor(owner: UplinkBudget['owner'], parts: BudgetParts) {
    const { uplinksPerSecond, burstUplinks, uplinksPerDay } = parts.limits;
    this.owner = owner;
    this.#parts = parts;
    this.#rateTokens = uplinksPerSecond > 0 ? burstUplinks : Number.POSITIVE_INFINITY;
    this.#dayTokens = uplinksPerDay > 0 ? uplinksPerDay : Number.POSITIVE_INFINITY;
    this.#refilledAtMs = parts.clock.now();
  }

  /** Counts uplinks that arrived. */
  take(count: number): void {
    this.#refill();
    this.#rateTokens -= count;
    this.#dayTokens -= count;
    this.#update();
  }

  /** Calls the connection's `updateReading` once there are tokens again. */
  hold(connection: HeldConnection): void {
    this.#held ??= new Set();
    this.#held.add(connection);
  }

  /** Must be called when the connection has closed. */
  release(connection: HeldConnection): void {
    this.#held?.delete(connection);
  }

  /** Cancels the timer. */
  stop(): void {
    this.#timer?.cancel();
    this.#held?.clear();
  }

  #refill(): void {
    const { uplinksPerSecond, burstUplinks, uplinksPerDay } = this.#parts.limits;
    const nowMs = this.#parts.clock.now();
    const passed = nowMs - this.#refilledAtMs;
    this.#refilledAtMs = nowMs;
    if (uplinksPerSecond > 0)
      this.#rateTokens = Math.min(burstUplinks, this.#rateTokens + (passed * uplinksPerSecond) / Seconds(1));
    if (uplinksPerDay > 0)
      this.#dayTokens = Math.min(uplinksPerDay, this.#dayTokens + (passed * uplinksPerDay) / Days(1));
  }

  /** Must be called after each refill. */
  #update(): void {
    const { uplinksPerSecond, uplinksPerDay } = this.#parts.limits;
    const rateWait = waitForToken(this.#rateTokens, uplinksPerSecond / Seconds(1));
    const dayWait = waitForToken(this.#dayTokens, uplinksPerDay / Days(1));
    const wait = Math.max(rateWait, dayWait);
    if (wait > 0) this.#spend(wait, dayWait > 0 ? 'day' : 'rate');
    else if (this.isSpent) this.#refilled();
  }

  /** Notes that the budget is spent, and sets a timer for the time when it has a token again. */
  #spend(wait: Milliseconds, limit: BudgetLimit): void {
    this.isSpent = true;
    const before = this.over;
    if (before === undefined || (limit === 'day' && before.limit === 'rate')) {
      this.over = { sinceMs: before?.sinceMs ?? this.#parts.watcher.now(), limit };
      this.#parts.watcher.over(this);
    }
    this.#after(Math.max(wait, MIN_REFILL_WAIT), () => {
      this.#refill();
      this.#update();
    });
  }

  #refilled(): void {
    this.isSpent = false;
    this.#after(WITHIN_BUDGET_AFTER, () => {
      this.over = undefined;
      this.#parts.watcher.within(this);
    });
    // A connection may spend the budget again at once. The connections after it then stay on hold and go first next
    // time.
    for (const connection of [...(this.#held ?? [])]) {
      if (this.isSpent) return;
      this.#held?.delete(connection);
      connection.updateReading();
    }
  }

  #after(wait: Milliseconds, callback: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.after(wait, callback);
  }
}

/** How long until a bucket with so many tokens has one; 0 if it has one. */
function waitForToken(tokens: number, tokensPerMs: number): Milliseconds {
  return tokens >= 1 ? 0 : (1 - tokens) / tokensPerMs;
}
