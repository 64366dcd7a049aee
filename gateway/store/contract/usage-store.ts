/**
 * Usage in the store: SIM cards, counts, price plans, monthly statements. As in store.ts, a method that writes resolves
 * after the write is on the disk, and a rejected call has changed nothing.
 *
 * Rows identify a lock by its MAC and not by its device id: bills must stay correct, and activations known, after the
 * device is removed or erased. The SIM is soldered into the lock, so the MAC identifies it too.
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { UsageCounts } from '../../usage/counts.js';
import type { Month } from '../../usage/month.js';
import type { PricePlan } from '../../usage/price.js';
import type { StatementBasis } from '../../usage/statement.js';

/** The name of the metadata entry for the start of counting, ms since the epoch. */
export const COUNTING_SINCE_METADATA = 'usage-counting-since-ms';

/** Counts to be added for a lock, a merchant and a month. */
export interface UsageDelta extends UsageCounts {
  readonly month: Month;
  readonly mac: Mac;
  /** The merchant to whom the lock belonged when it connected. */
  readonly merchantId: number;
  readonly simulated: boolean;
}

/** Stored counts. */
export interface UsageRow extends UsageDelta {
  readonly merchantName: string;
}

/** Selects rows; a member that is left out selects all. */
export interface UsageFilter {
  readonly month?: Month | undefined;
  readonly mac?: Mac | undefined;
  /** The merchant's name. */
  readonly merchant?: string | undefined;
}

/** A plan and its first month. It applies until the first month of a later plan. */
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
  /** The JSON of a Statement, byte for byte as it was closed. */
  readonly body: string;
}

/** A page of a merchant's counts of a month. */
export interface UsagePage {
  readonly merchantId: number;
  readonly month: Month;
  /** Identifies the last row before the page; undefined for the first page. */
  readonly after: { readonly mac: Mac; readonly simulated: boolean } | undefined;
  readonly limit: number;
}

/** A closed month of a merchant. */
export interface StatementClosing {
  readonly month: Month;
  readonly closedAtMs: number;
}

export interface UsageStore {
  /** Records activations, a SIM's first accepted connections. A SIM that was activated before is not changed. */
  activate(sims: readonly { readonly mac: Mac; readonly atMs: number }[]): Promise<void>;
  /** Returns every SIM that was ever activated, with the wall-clock time. */
  readActivations(): Promise<{ readonly mac: Mac; readonly activatedAtMs: number }[]>;
  /** Adds counts, in one commit. */
  add(deltas: readonly UsageDelta[], nowMs: number): Promise<void>;
  /** Returns counts, ordered by month, MAC, merchant. */
  read(filter: UsageFilter): Promise<UsageRow[]>;
  /**
   * Sets a merchant's plan from a month on.
   *
   * @throws LockgateError `no-such-merchant`; `usage-month-closed` if that month or a later one has a statement
   */
  putPlan(merchant: string, plan: PricePlan, from: Month, nowMs: number): Promise<DatedPlan>;
  /** Returns plans, of one or all merchants, ordered by merchant and month. */
  readPlans(merchant?: string): Promise<DatedPlan[]>;
  /** Returns the closed months of a merchant. */
  readClosedMonths(merchantId: number): Promise<Month[]>;
  /**
   * Closes a month for a merchant, once: reads the counts, stores the statement that `make` returns as JSON, and
   * records what is billed, in one transaction. It bills exactly the counts that it read: whatever is added meanwhile
   * is billed as late usage by the next statement. A closed month is not changed.
   *
   * @returns whether this call closed the month
   */
  close(merchantId: number, month: Month, nowMs: number, make: (basis: StatementBasis) => string): Promise<boolean>;
  /**
   * Notes that all traffic of this gateway before `throughMs` is in earlier calls of {@link add}. Writes nothing
   * itself.
   */
  noteCounted(throughMs: number): void;
  /**
   * Returns the time up to which every gateway has added its counts, ms since the epoch: months that ended by then can
   * be closed. 0 before this gateway has noted any.
   */
  readCountedThrough(): Promise<number>;
  /** Returns a merchant's counts of a month, ordered by MAC, page by page. */
  readPage(page: UsagePage): Promise<UsageRow[]>;
  /** Returns when a merchant's months were closed, newest month first, at most `limit`, before a month if given. */
  readClosings(merchantId: number, limit: number, before?: Month): Promise<StatementClosing[]>;
  /** Returns the JSON of a merchant's statement; null if the month is not closed. */
  findStatement(merchantId: number, month: Month): Promise<string | null>;
  /** Returns statements, ordered by merchant. */
  readStatements(month: Month, merchant?: string): Promise<StoredStatement[]>;
}
