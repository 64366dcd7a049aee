/**
 * How much one lock may send (interfaces.md §2, "Fairness"): a rate with a burst, and a number a day. Whoever has its
 * secret can store no more than that, and a lock that behaves never comes near it.
 *
 * Both limits are token buckets. The day's holds a day's worth and fills up within a day, so a lock that has spent it
 * is read from at the pace at which it fills, and is never cut off for hours: an alarm still gets through.
 *
 * - *within*: everything that comes is read.
 * - *spent*: one of the buckets is empty. Nothing more is read from the lock's connections until there is a token
 *   again. What one read brought is all taken, so a bucket may be overdrawn, and the wait is as much longer.
 * - *over*: it was spent within the last minute. This is what operators see, since a lock that goes on flooding is
 *   spent and not spent many times a second.
 */
import { type Clock, Days, type Milliseconds, Minutes, Seconds, type Timer } from '../../../proto/clock.js';
import type { Sender } from '../../ingest/ingest.js';

/** What a lock may send, and what all its phones together may. */
export interface BudgetLimits {
  /** Sustained; 0 for no limit of this kind. */
  readonly uplinksPerSecond: number;
  /** How many may come at once. */
  readonly burstUplinks: number;
  /** 0 for no limit of this kind. */
  readonly uplinksPerDay: number;
}

/** Which of the limits was reached. */
export type BudgetLimit = 'rate' | 'day';

/** A connection that is not read from while the budget is spent. */
export interface HeldConnection {
  /** The budget may be spent no longer: look again. */
  readOn(): void;
}

export interface BudgetWatcher {
  /** The run's clock, ms since the epoch. */
  now(): number;
  /** The budget is over, or it is over by the other limit too. */
  over(budget: UplinkBudget): void;
  /** It is within its limits again. */
  within(budget: UplinkBudget): void;
}

/** How long a budget has to be unspent to count as within its limits again. */
export const WITHIN_AFTER: Milliseconds = Minutes(1);
/** The shortest wait for tokens: a flooding lock costs so many looks, and no more. */
const LEAST_WAIT: Milliseconds = 50;

/** A bucket of tokens; it may be overdrawn. */
class TokenBucket {
  readonly #most: number;
  readonly #perMs: number;
  #left: number;
  #asOfMs: number;

  constructor(most: number, perMs: number, nowMs: number) {
    this.#most = most;
    this.#perMs = perMs;
    this.#left = most;
    this.#asOfMs = nowMs;
  }

  take(count: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#left -= count;
  }

  /** How long until there is a token; 0 where there is one. */
  wait(nowMs: number): Milliseconds {
    this.#refill(nowMs);
    return this.#left >= 1 ? 0 : (1 - this.#left) / this.#perMs;
  }

  #refill(nowMs: number): void {
    this.#left = Math.min(this.#most, this.#left + (nowMs - this.#asOfMs) * this.#perMs);
    this.#asOfMs = nowMs;
  }
}

/** The budget of a lock, or of all phones that act for it. It outlives their connections. */
export class UplinkBudget {
  readonly owner: Pick<Sender, 'deviceId' | 'mac' | 'source'>;
  /** Nothing more is to be read for now. */
  isSpent = false;
  /** Since when it is over, by the run's clock, and by which limit; undefined where it is within. */
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

  /** So many came. */
  take(count: number): void {
    const nowMs = this.#clock.now();
    this.#rate?.take(count, nowMs);
    this.#day?.take(count, nowMs);
    this.#look(nowMs);
  }

  /** Tells the connection when there are tokens again. */
  hold(connection: HeldConnection): void {
    this.#held.add(connection);
  }

  /** The connection has ended. */
  release(connection: HeldConnection): void {
    this.#held.delete(connection);
  }

  /** Waits for nothing any more. */
  stop(): void {
    this.#timer?.cancel();
    this.#held.clear();
  }

  #look(nowMs: number): void {
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
    this.#after(Math.max(wait, LEAST_WAIT), () => this.#look(this.#clock.now()));
  }

  #refilled(): void {
    this.isSpent = false;
    this.#after(WITHIN_AFTER, () => {
      this.over = undefined;
      this.#watcher.within(this);
    });
    // One may spend it again at once: those behind it are held on, and are first the next time.
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
