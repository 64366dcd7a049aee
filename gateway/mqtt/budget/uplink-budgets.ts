/**
 * Holds the uplink budgets of all locks, and of the phones that act for them. A budget is created when its lock first
 * connects, and stays when the connection closes: reconnecting does not refill it. Budgets are only in memory, so each
 * is full when the gateway starts.
 *
 * All phones of a lock together share a budget that is separate from the lock's: a flooding phone blocks no lock, and
 * many phones can store no more than one.
 */
import type { Clock } from '../../../proto/clock.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { Sender } from '../../ingest/ingest.js';
import { type BudgetLimit, type BudgetLimits, type BudgetWatcher, UplinkBudget } from './uplink-budget.js';

export interface UplinkBudgetsOptions {
  readonly limits: BudgetLimits;
  /**
   * Runs at the speed of the run: at 60 × speed a lock may send 60 times as much (protocol.md §3, "Sped-up runs"). The
   * clock is monotonic, so that a change of the machine's clock neither fills nor empties a budget.
   */
  readonly clock: Clock;
  readonly watcher: BudgetWatcher;
}

/** A budget that is exceeded. */
export interface ExceededBudget {
  readonly source: Source;
  readonly limit: BudgetLimit;
  /** By the run's clock (wall-clock time, except in a sped-up simulation), ms since the epoch. */
  readonly sinceMs: number;
}

export class UplinkBudgets {
  readonly #options: UplinkBudgetsOptions;
  /** Budgets of locks that have connected since the start, by device id. */
  readonly #ofLock = new Map<number, UplinkBudget>();
  /** Budgets of locks' phones, by the lock's device id. */
  readonly #ofPhones = new Map<number, UplinkBudget>();
  readonly #isLimited: boolean;

  constructor(options: UplinkBudgetsOptions) {
    this.#options = options;
    this.#isLimited = options.limits.uplinksPerSecond > 0 || options.limits.uplinksPerDay > 0;
  }

  get limits(): BudgetLimits {
    return this.#options.limits;
  }

  /** The budget that a connection counts against; undefined if there are no limits. */
  of({ deviceId, mac, source }: Sender): UplinkBudget | undefined {
    if (!this.#isLimited) return undefined;
    const budgets = source === 'phone' ? this.#ofPhones : this.#ofLock;
    const known = budgets.get(deviceId);
    if (known !== undefined) return known;
    const { limits, clock, watcher } = this.#options;
    const budget = new UplinkBudget({ deviceId, mac, source }, limits, clock, watcher);
    budgets.set(deviceId, budget);
    return budget;
  }

  /** The exceeded budgets of a lock and its phones. */
  overOf(deviceId: number): ExceededBudget[] {
    return [this.#ofLock.get(deviceId), this.#ofPhones.get(deviceId)].flatMap((budget) => {
      return budget?.over === undefined ? [] : [{ source: budget.owner.source, ...budget.over }];
    });
  }

  /** The number of exceeded budgets. */
  countOver(): number {
    let count = 0;
    for (const budgets of [this.#ofLock, this.#ofPhones])
      for (const { over } of budgets.values()) if (over !== undefined) count += 1;
    return count;
  }

  stop(): void {
    for (const budgets of [this.#ofLock, this.#ofPhones]) for (const budget of budgets.values()) budget.stop();
  }
}
