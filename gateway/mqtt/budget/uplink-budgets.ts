/**
 * Holds the uplink budgets of all locks, and of the phones that act for them. A budget is created when its lock first
 * connects, and stays when the connection closes: reconnecting does not refill it. Budgets are only in memory, so each
 * is full when the gateway starts.
 *
 * All phones of a lock together share a budget that is separate from the lock's: a flooding phone blocks no lock, and
 * many phones can store no more than one.
 */
import type { Source } from '../../../proto/wire/ping.js';
import type { Sender } from '../../ingest/ingest.js';
import { type BudgetLimit, type BudgetLimits, type BudgetParts, UplinkBudget } from './uplink-budget.js';

/** A budget that is exceeded. */
export interface ExceededBudget {
  readonly source: Source;
  readonly limit: BudgetLimit;
  /** By the run's clock (wall-clock time, except in a sped-up simulation), ms since the epoch. */
  readonly sinceMs: number;
}

export class UplinkBudgets {
  readonly #parts: BudgetParts;
  /** Budgets of locks that have connected since the start, by device id. */
  readonly #ofLock = new Map<number, UplinkBudget>();
  /** Budgets of locks' phones, by the lock's device id. */
  readonly #ofPhones = new Map<number, UplinkBudget>();
  readonly #isLimited: boolean;

  constructor(parts: BudgetParts) {
    this.#parts = parts;
    this.#isLimited = parts.limits.uplinksPerSecond > 0 || parts.limits.uplinksPerDay > 0;
  }

  get limits(): BudgetLimits {
    return this.#parts.limits;
  }

  /** The budget that a connection counts against; undefined if there are no limits. */
  of(sender: Sender): UplinkBudget | undefined {
    if (!this.#isLimited) return undefined;
    const { deviceId, source } = sender;
    const budgets = source === 'phone' ? this.#ofPhones : this.#ofLock;
    const known = budgets.get(deviceId);
    if (known !== undefined) return known;
    const budget = new UplinkBudget(sender, this.#parts);
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
