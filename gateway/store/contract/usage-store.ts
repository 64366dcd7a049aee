/**
 * What usage asks of the store: SIM cards, counts, price plans, statements. The promises of store.ts hold: a method
 * that writes resolves after the write is on the disk, and nothing of a rejected call is kept.
 *
 * Rows name a lock by its MAC and not by its device: a bill must still be right, and a SIM's activation known, when the
 * device has been removed or erased. The SIM is soldered into the lock, so the MAC names it too.
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { UsageCounts } from '../../usage/counts.js';
import type { Month } from '../../usage/month.js';
import type { PricePlan } from '../../usage/price.js';
import type { StatementBasis } from '../../usage/statement.js';

/** The fact that says since when usage is counted, ms since the epoch. */
export const COUNTING_SINCE_METADATA = 'usage-counting-since-ms';

/** Counts to be added to what the store has for this lock, merchant and month. */
export interface UsageDelta extends UsageCounts {
  readonly month: Month;
  readonly mac: Mac;
  /** Whose lock it was when it connected. */
  readonly merchantId: number;
  readonly simulated: boolean;
}

/** Counts as the store has them. */
export interface UsageRow extends UsageDelta {
  readonly merchantName: string;
}

/** Which rows are asked for; a member that is left out lets everything through. */
export interface UsageFilter {
  readonly month?: Month | undefined;
  readonly mac?: Mac | undefined;
  /** The merchant's name. */
  readonly merchant?: string | undefined;
}

/** A plan, and the first month in which it is in force. It stays so until a later one begins. */
export interface DatedPlan extends PricePlan {
  readonly from: Month;
  readonly merchantId: number;
  readonly merchantName: string;
  readonly setAtMs: number;
}

export interface StoredStatement {
  readonly merchantId: number;
  readonly merchantName: string;
  readonly month: Month;
  /** The JSON of a Statement, to the byte as it was closed. */
  readonly body: string;
}

export interface UsageStore {
  /** Notes first activations. A SIM that has been active keeps its time. */
  activate(sims: readonly { readonly mac: Mac; readonly atMs: number }[]): Promise<void>;
  /** Every SIM that was ever activated, and when by the wall's clock. */
  readActivations(): Promise<{ readonly mac: Mac; readonly activatedAtMs: number }[]>;
  /** Adds counts, all of them together. */
  add(deltas: readonly UsageDelta[], nowMs: number): Promise<void>;
  /** Ordered by month, MAC, merchant. */
  read(filter: UsageFilter): Promise<UsageRow[]>;
  /**
   * Sets a merchant's plan from a month on.
   *
   * @throws LockgateError `no-such-merchant`; `usage-month-closed` where that month or a later one has a statement
   */
  putPlan(merchant: string, plan: PricePlan, from: Month, nowMs: number): Promise<DatedPlan>;
  /** Ordered by merchant and month; all merchants' where none is named. */
  readPlans(merchant?: string): Promise<DatedPlan[]>;
  /** The months that have been closed for a merchant. */
  readClosedMonths(merchantId: number): Promise<Month[]>;
  /**
   * Closes a month for a merchant, once: reads what it rests on, writes what `make` makes of it, and notes what has
   * been billed, in one transaction. A month that is closed already is left as it is.
   *
   * @returns whether it was closed now
   */
  close(merchantId: number, month: Month, nowMs: number, make: (basis: StatementBasis) => string): Promise<boolean>;
  /** Ordered by merchant. */
  readStatements(month: Month, merchant?: string): Promise<StoredStatement[]>;
}
