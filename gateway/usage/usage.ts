/**
 * Stores the meter's counts, once a second and in batches, and closes the statements of each month that ends, also of
 * months that ended while the gateway was down.
 *
 * Months follow the wall clock, never the run's clock: a statement is a bill for bytes that moved in a real month, and
 * a demo at 60 × speed would otherwise close future months. The locks of a demo are simulated, so they are not billed.
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { GatewayEvents } from '../events.js';
import type { Merchant } from '../store/contract/merchants/merchant-store.js';
import type { Store } from '../store/contract/store.js';
import {
  COUNTING_SINCE_METADATA,
  type DatedPlan,
  type StoredStatement,
  type UsageFilter,
  type UsagePage,
  type UsageRow,
} from '../store/contract/usage-store.js';
import { Meter } from './meter.js';
import { type Month, monthEndMs, monthOf, monthsBetween, previousMonth } from './month.js';
import { checkPlan, type PricePlan } from './price.js';
import { SimCards } from './sim-cards.js';
import { makeStatement } from './statement.js';

/** How often counts are stored. A crash loses at most the counts of one such interval (interfaces.md §5). */
const STORE_INTERVAL = Seconds(1);
/** Locks whose counts are stored in one batch. It is small, since pings in the same commit wait for it. */
const BATCH_LOCKS = 100;
/** With more locks than fit into this many batches, the batches are larger: all must be stored within the interval. */
const MAX_BATCHES = 20;

export interface UsageParts {
  readonly store: Pick<Store, 'usage' | 'listMerchants' | 'readMetadata' | 'writeMetadata' | 'ownership'>;
  /** The wall clock. */
  readonly clock: Clock;
  /** The run's clock (wall-clock time, except in a sped-up simulation), for the times of events. */
  readonly runClock: Clock;
  readonly events: GatewayEvents;
}

/** What closing a month did for one merchant. */
export interface ClosedMonth {
  readonly merchant: string;
  readonly month: Month;
  /** False if it had been closed before. */
  readonly isNew: boolean;
}

export class Usage {
  readonly meter: Meter;
  readonly sims: SimCards;
  readonly #parts: UsageParts;
  readonly #countingSince: Month;
  #timer: Timer | undefined;
  #storing: Promise<void> = Promise.resolve();
  #ticking: Promise<void> | undefined;
  #isStopped = false;
  /** The last month that is closed for every merchant. */
  #closedThrough: Month | undefined;

  private constructor(parts: UsageParts, sims: SimCards, countingSince: Month) {
    this.#parts = parts;
    this.sims = sims;
    this.meter = new Meter(parts.clock);
    this.#countingSince = countingSince;
  }

  /** Closes the months that ended while the gateway was down, and starts to count. Rejects if the store fails. */
  static async start(parts: UsageParts): Promise<Usage> {
    const { store, clock } = parts;
    const sims = await SimCards.load(store.usage, clock);
    let countingSince = await store.readMetadata(COUNTING_SINCE_METADATA);
    if (countingSince === null) {
      countingSince = String(clock.now());
      await store.writeMetadata(COUNTING_SINCE_METADATA, countingSince);
    }
    const usage = new Usage(parts, sims, monthOf(Number(countingSince)));
    await usage.#closeDue();
    usage.#scheduleTick();
    return usage;
  }

  /** Stores all counts up to now. Rejects if the store fails; the counts are then stored with the next call. */
  store(): Promise<void> {
    return this.#store('all');
  }

  /** @param connections whose counts are stored: all, or those with messages since the last call */
  #store(connections: 'all' | 'active'): Promise<void> {
    // Calls run one after the other: when this one resolves, no earlier call is still storing counts.
    const result = this.#storing.then(() => this.#storeCounted(connections));
    this.#storing = result.catch(() => undefined);
    return result;
  }

  async #storeCounted(connections: 'all' | 'active'): Promise<void> {
    const deltas = this.meter.take(connections);
    // A month that has ended never returns, even if the clock is set back.
    const throughMs = Math.max(this.#parts.clock.now(), monthEndMs(this.#lastEnded()));
    const batchSize = Math.max(BATCH_LOCKS, Math.ceil(deltas.length / MAX_BATCHES));
    for (let start = 0; start < deltas.length; start += batchSize) {
      try {
        await this.#parts.store.usage.add(deltas.slice(start, start + batchSize), this.#parts.clock.now());
      } catch (error) {
        this.meter.putBack(deltas.slice(start));
        throw error;
      }
    }
    // The store has all counts of this gateway up to that time.
    if (connections === 'all') this.#parts.store.usage.noteCounted(throughMs);
  }

  /** The usage up to now; of connections without a message since counts were last stored, up to that time. */
  async read(filter: UsageFilter): Promise<UsageRow[]> {
    await this.#store('active');
    return await this.#parts.store.usage.read(filter);
  }

  /** A page of a merchant's usage of a month, up to the same time as {@link read}. */
  async readPage(page: UsagePage): Promise<UsageRow[]> {
    await this.#store('active');
    return await this.#parts.store.usage.readPage(page);
  }

  /**
   * Closes a month that has ended, and all months before it, for every merchant. A month that is already closed is not
   * changed. The default is the last month that ended.
   *
   * @throws LockgateError `usage-month-open` if the month has not ended
   */
  async close(month: Month = this.#lastEnded()): Promise<ClosedMonth[]> {
    if (month > this.#lastEnded())
      throw new LockgateError(
        'usage-month-open',
        `${month} has not ended: it can be closed from ${formatDate(monthEndMs(month))} on`,
      );
    await this.store();
    const closed: ClosedMonth[] = [];
    for (const merchant of await this.#parts.store.listMerchants()) {
      for (const dueMonth of this.#monthsDue(merchant, month))
        closed.push(await this.#closeFor(merchant, dueMonth, false));
    }
    return closed;
  }

  /** The statements of a month. @throws LockgateError `no-such-statement` if there is none */
  async statements(month: Month = this.#lastEnded(), merchant?: string): Promise<StoredStatement[]> {
    const statements = await this.#parts.store.usage.readStatements(month, merchant);
    if (statements.length > 0) return statements;
    const merchantText = merchant === undefined ? '' : ` for a merchant named ${JSON.stringify(merchant)}`;
    const why = month > this.#lastEnded() ? 'it has not ended' : 'close it with "lockgate usage close"';
    throw new LockgateError('no-such-statement', `there is no statement of ${month}${merchantText}: ${why}`);
  }

  /**
   * Sets a merchant's plan from a month on; the default is the current month.
   *
   * @throws LockgateError `input-price`, `input-currency`, `no-such-merchant`, `usage-month-closed`
   */
  async setPlan(merchant: string, plan: PricePlan, from: Month = this.meter.month): Promise<DatedPlan> {
    return await this.#parts.store.usage.putPlan(merchant, checkPlan(plan), from, this.#parts.clock.now());
  }

  /** The price plans of a merchant, or of all merchants. */
  plans(merchant?: string): Promise<DatedPlan[]> {
    return this.#parts.store.usage.readPlans(merchant);
  }

  /** Stores the last counts. Call it once every connection has ended; no timer is left running afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#ticking;
    await this.store().catch((error: unknown) => this.#reportFailure(error));
  }

  #lastEnded(): Month {
    return previousMonth(this.meter.month);
  }

  /**
   * The months to close for a merchant, up to `last`: from the first in which the merchant existed, or was opened
   * again, and usage was counted. `last` is always one of them, except for a merchant that was closed: no month after
   * that of its closing has a statement, until the one in which it was opened again.
   */
  #monthsDue({ createdAtMs, closedAtMs, reopenedAtMs }: Merchant, last: Month): Month[] {
    const openedIn = monthOf(reopenedAtMs ?? createdAtMs);
    const first = openedIn > this.#countingSince ? openedIn : this.#countingSince;
    const closedIn = closedAtMs === null ? undefined : monthOf(closedAtMs);
    const lastOpen = closedIn !== undefined && closedIn < last ? closedIn : last;
    if (first <= lastOpen) return monthsBetween(first, lastOpen);
    return closedIn === undefined && reopenedAtMs === null ? [last] : [];
  }

  /** Closes a month for a merchant. @param byItself whether the gateway closes it without an operator's request */
  async #closeFor(merchant: Merchant, month: Month, byItself: boolean): Promise<ClosedMonth> {
    const isNew = await this.#parts.store.usage.close(merchant.id, month, this.#parts.clock.now(), (basis) =>
      JSON.stringify(makeStatement(basis)),
    );
    const { events, runClock } = this.#parts;
    if (isNew) events.emit('statement-closed', { atMs: runClock.now(), merchant: merchant.name, month, byItself });
    return { merchant: merchant.name, month, isNew };
  }

  /** Closes every month that has ended, for every merchant who existed in it. */
  async #closeDue(): Promise<void> {
    const last = this.#lastEnded();
    // One gateway closes months for all.
    if (this.#closedThrough === last || !this.#parts.store.ownership.duties.holds('months')) return;
    await this.store();
    // Another gateway may still have counts of the month.
    if ((await this.#parts.store.usage.readCountedThrough()) < monthEndMs(last)) return;
    for (const merchant of await this.#parts.store.listMerchants()) {
      if (monthOf(merchant.createdAtMs) > last || this.#countingSince > last) continue;
      const closed = new Set(await this.#parts.store.usage.readClosedMonths(merchant.id));
      for (const month of this.#monthsDue(merchant, last))
        if (!closed.has(month)) await this.#closeFor(merchant, month, true);
    }
    this.#closedThrough = last;
  }

  /** Sets the timer for the next tick: every second, and at the end of the month. */
  #scheduleTick(): void {
    if (this.#isStopped) return;
    const { clock } = this.#parts;
    const untilMonthEnd = Math.max(this.meter.monthEndMs - clock.now(), 0);
    this.#timer = clock.after(Math.min(STORE_INTERVAL, untilMonthEnd), () => {
      this.meter.turnMonth();
      // While a tick waits for a slow store, no second tick starts. The next tick stores the counts since then.
      this.#ticking ??= this.#tick().finally(() => {
        this.#ticking = undefined;
      });
      this.#scheduleTick();
    });
  }

  async #tick(): Promise<void> {
    try {
      await this.store();
      await this.#closeDue();
    } catch (error) {
      this.#reportFailure(error);
    }
  }

  #reportFailure(error: unknown): void {
    const { events, runClock } = this.#parts;
    events.emit('store-failed', { atMs: runClock.now(), why: (error as Error).message });
  }
}
