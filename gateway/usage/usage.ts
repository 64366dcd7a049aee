/**
 * Usage at work: the clock of it. Once a second what was counted goes into the store, a piece with each commit; when a
 * month ends, its statements are closed, also those of months that ended while the gateway was down.
 *
 * It lives by the wall's clock, never by the run's. A statement is a bill, and real bytes moved in a real month; a demo
 * at 60 × speed would otherwise close months that have not been. Its locks are simulated and billed to nobody anyway.
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { toDate } from '../../proto/wire/ping-json.js';
import type { GatewayEvents } from '../events.js';
import type { Merchant, Store } from '../store/contract/store.js';
import {
  COUNTING_SINCE_METADATA,
  type DatedPlan,
  type StoredStatement,
  type UsageFilter,
  type UsageRow,
} from '../store/contract/usage-store.js';
import { Meter } from './meter.js';
import { type Month, monthEndMs, monthOf, monthsBetween, previousMonth } from './month.js';
import { checkPlan, type PricePlan } from './price.js';
import { SimCards } from './sim-cards.js';
import { makeStatement } from './statement.js';

/** How often counts are stored: what a crash can lose (interfaces.md §5). */
const STORE_EVERY = Seconds(1);
/** Counts of so many locks go into one commit: the pings of that commit wait for them. */
const STORED_TOGETHER = 100;
/** But no more pieces than so many, however many locks there are. */
const PIECES_MOST = 20;

export interface UsageParts {
  readonly store: Pick<Store, 'usage' | 'listMerchants' | 'readMetadata' | 'writeMetadata'>;
  /** The wall's clock. */
  readonly clock: Clock;
  /** The run's clock, for what is told of failures. */
  readonly runClock: Clock;
  readonly events: GatewayEvents;
}

/** What closing a month did for one merchant. */
export interface ClosedMonth {
  readonly merchant: string;
  readonly month: Month;
  /** False where it had been closed before. */
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
  /** The last month that is closed for everybody. */
  #closedThrough: Month | undefined;

  private constructor(parts: UsageParts, sims: SimCards, countingSince: Month) {
    this.#parts = parts;
    this.sims = sims;
    this.meter = new Meter(parts.clock);
    this.#countingSince = countingSince;
  }

  /** Closes what ended while nobody was here, and begins to count. Rejects where the store fails. */
  static async start(parts: UsageParts): Promise<Usage> {
    const { store, clock } = parts;
    const sims = await SimCards.load(store.usage, clock);
    let since = await store.readMetadata(COUNTING_SINCE_METADATA);
    if (since === null) {
      since = String(clock.now());
      await store.writeMetadata(COUNTING_SINCE_METADATA, since);
    }
    const usage = new Usage(parts, sims, monthOf(Number(since)));
    await usage.#closeDue();
    usage.#arm();
    return usage;
  }

  /** Stores all that was counted up to this moment. Rejects where the store fails; then it's tried again later. */
  store(): Promise<void> {
    // One after the other, so that whoever waits for this knows that nothing counted before is still under way.
    const result = this.#storing.then(() => this.#storeCounted());
    this.#storing = result.catch(() => undefined);
    return result;
  }

  async #storeCounted(): Promise<void> {
    const deltas = this.meter.take();
    const together = Math.max(STORED_TOGETHER, Math.ceil(deltas.length / PIECES_MOST));
    for (let at = 0; at < deltas.length; at += together) {
      try {
        await this.#parts.store.usage.add(deltas.slice(at, at + together), this.#parts.clock.now());
      } catch (error) {
        this.meter.putBack(deltas.slice(at));
        throw error;
      }
    }
  }

  /** What was used, up to this moment. */
  async read(filter: UsageFilter): Promise<UsageRow[]> {
    await this.store();
    return await this.#parts.store.usage.read(filter);
  }

  /**
   * Closes a month that has ended, and the ended ones before it, for every merchant. One that is closed already stays
   * as it is. Without a month, it is the last that ended.
   *
   * @throws LockgateError `usage-month-open` where it has not ended
   */
  async close(month: Month = this.#lastEnded()): Promise<ClosedMonth[]> {
    if (month > this.#lastEnded())
      throw new LockgateError(
        'usage-month-open',
        `${month} has not ended: it can be closed from ${toDate(monthEndMs(month))} on`,
      );
    await this.store();
    const closed: ClosedMonth[] = [];
    for (const merchant of await this.#parts.store.listMerchants()) {
      for (const each of this.#monthsDue(merchant, month)) closed.push(await this.#closeFor(merchant, each, false));
    }
    return closed;
  }

  /** The statements of a month. @throws LockgateError `no-such-statement` where there is none */
  async statements(month: Month = this.#lastEnded(), merchant?: string): Promise<StoredStatement[]> {
    const statements = await this.#parts.store.usage.readStatements(month, merchant);
    if (statements.length > 0) return statements;
    const whose = merchant === undefined ? '' : ` for a merchant named ${JSON.stringify(merchant)}`;
    const why = month > this.#lastEnded() ? 'it has not ended' : 'close it with "lockgate usage close"';
    throw new LockgateError('no-such-statement', `there is no statement of ${month}${whose}: ${why}`);
  }

  /**
   * Sets a merchant's plan, from this month on where no other is given.
   *
   * @throws LockgateError `input-price`, `input-currency`, `no-such-merchant`, `usage-month-closed`
   */
  async setPlan(merchant: string, plan: PricePlan, from: Month = this.meter.month): Promise<DatedPlan> {
    return await this.#parts.store.usage.putPlan(merchant, checkPlan(plan), from, this.#parts.clock.now());
  }

  plans(merchant?: string): Promise<DatedPlan[]> {
    return this.#parts.store.usage.readPlans(merchant);
  }

  /** Stores what was counted last. To be called when every connection has ended; nothing is left of it afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#ticking;
    // A store that fails has said so each second.
    await this.store().catch(() => undefined);
  }

  #lastEnded(): Month {
    return previousMonth(this.meter.month);
  }

  /** A merchant's months up to `last`: from the first that it was here and counted, and `last` in any case. */
  #monthsDue(merchant: Merchant, last: Month): Month[] {
    const here = monthOf(merchant.createdAtMs);
    const first = here > this.#countingSince ? here : this.#countingSince;
    return first > last ? [last] : monthsBetween(first, last);
  }

  async #closeFor(merchant: Merchant, month: Month, byItself: boolean): Promise<ClosedMonth> {
    const isNew = await this.#parts.store.usage.close(merchant.id, month, this.#parts.clock.now(), (basis) =>
      JSON.stringify(makeStatement(basis)),
    );
    const { events, runClock } = this.#parts;
    if (isNew) events.emit('statement-closed', { atMs: runClock.now(), merchant: merchant.name, month, byItself });
    return { merchant: merchant.name, month, isNew };
  }

  /** Closes every ended month of every merchant who was here in it. */
  async #closeDue(): Promise<void> {
    const last = this.#lastEnded();
    if (this.#closedThrough === last) return;
    await this.store();
    for (const merchant of await this.#parts.store.listMerchants()) {
      if (monthOf(merchant.createdAtMs) > last || this.#countingSince > last) continue;
      const closed = new Set(await this.#parts.store.usage.readClosedMonths(merchant.id));
      for (const month of this.#monthsDue(merchant, last))
        if (!closed.has(month)) await this.#closeFor(merchant, month, true);
    }
    this.#closedThrough = last;
  }

  /** Wakes every second, and at the very end of the month. */
  #arm(): void {
    if (this.#isStopped) return;
    const { clock } = this.#parts;
    const untilMonthEnd = Math.max(this.meter.monthEndMs - clock.now(), 0);
    this.#timer = clock.after(Math.min(STORE_EVERY, untilMonthEnd), () => {
      this.meter.keepMonth();
      // One that waits for a slow store has taken, or will take, what another one would.
      this.#ticking ??= this.#tick().finally(() => {
        this.#ticking = undefined;
      });
      this.#arm();
    });
  }

  async #tick(): Promise<void> {
    try {
      await this.store();
      await this.#closeDue();
    } catch (error) {
      const { events, runClock } = this.#parts;
      events.emit('store-failed', { atMs: runClock.now(), why: (error as Error).message });
    }
  }
}
