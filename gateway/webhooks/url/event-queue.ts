/**
 * The event queue of one URL: the merchant's events that were read from the store's log of uplinks and have no outcome
 * yet, in order of arrival. An event is a stored ping; its id is the uplink's. The URL's cursor is the position in the
 * log before its oldest events without an outcome (open-events.ts), and the queue starts there. Events that the URL's
 * filter leaves out are skipped.
 */
import { afterThisTurn } from '../../../proto/clock.js';
import type { LogPosition } from '../../store/contract/log/log-position.js';
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import type { Store } from '../../store/contract/store.js';
import type { WebhookUrl } from '../../store/contract/webhooks/webhook-url.js';
import { OpenEvents } from './open-events.js';

/** Events per read of the store. */
const EVENTS_PER_READ = 128;

export class EventQueue {
  readonly #url: WebhookUrl;
  readonly #store: Store;
  /** Events that were read but not attempted yet, oldest first. */
  #waiting: StoredUplink[] = [];
  /** Events whose first attempt was started and has no outcome yet, by id. */
  readonly #started = new Map<number, StoredUplink>();
  /** Ids after the cursor whose events had an outcome before this worker started. Undefined until the first read. */
  #concludedBefore: Set<number> | undefined;
  readonly #open: OpenEvents;
  /** False once a read has found no further event; true again after {@link expectMore}. */
  #mayHaveMore = true;
  /** Events that the URL's filter leaves out were read since the last call of {@link takeSkipped}. */
  #hasSkipped = false;
  /** Counts calls of {@link forgetLock}: a read during such a call may return erased events. */
  #forgetCount = 0;

  constructor(url: WebhookUrl, store: Store) {
    this.#url = url;
    this.#store = store;
    this.#open = new OpenEvents(url.cursor);
  }

  /** Events that were read and wait for their first attempt. */
  get length(): number {
    return this.#waiting.length;
  }

  /** The position before the oldest events without an outcome. */
  get cursor(): LogPosition {
    return this.#open.cursor;
  }

  /**
   * Whether the log may have events that were not read. A worker makes a pass after each attempt, and most passes find
   * no new event: asking this first spares a read of the store for each delivery.
   */
  get mayHaveMore(): boolean {
    return this.#mayHaveMore;
  }

  /** Must be called after each commit that may have stored events of the merchant. */
  expectMore(): void {
    this.#mayHaveMore = true;
  }

  /** Reads the next events. Afterwards {@link mayHaveMore} says whether there may be others. @throws StoreFailure */
  async readMore(): Promise<void> {
    // A commit during the read sets it again: the read may not have seen that commit.
    this.#mayHaveMore = false;
    try {
      if (await this.#readNext()) this.#mayHaveMore = true;
    } catch (error) {
      this.#mayHaveMore = true;
      throw error;
    }
  }

  /** Reads the next events. Returns whether there may be more. @throws StoreFailure */
  async #readNext(): Promise<boolean> {
    const { readTo } = this.#open;
    this.#concludedBefore ??= new Set(await this.#store.readOutcomesAfter(this.#url.id, readTo));
    const concluded = this.#concludedBefore;
    const forgetCountBefore = this.#forgetCount;
    const { merchantId, filter } = this.#url;
    // A URL gets other events than pings only if its filter names types of events.
    const kinds = filter?.events == null ? 'pings' : 'all';
    const events = await this.#store.readEvents(merchantId, readTo, EVENTS_PER_READ, kinds);
    const passing = await this.#passingOf(events);
    if (forgetCountBefore !== this.#forgetCount) return true;
    if (passing.length < events.length) this.#hasSkipped = true;
    // Each event is read once, so its id is not needed in the set any more.
    const added = passing.filter(({ id }) => !concluded.delete(id));
    let next = 0;
    for (const { id } of events) {
      const isOpen = id === added[next]?.id;
      if (isOpen) next += 1;
      this.#open.read(id, isOpen);
    }
    this.#waiting.push(...added);
    return events.length === EVENTS_PER_READ;
  }

  /** The events that pass the URL's filter. */
  async #passingOf(events: readonly StoredUplink[]): Promise<readonly StoredUplink[]> {
    const { filter } = this.#url;
    if (filter === null || events.length === 0) return events;
    // Many reads may follow one another until an event passes; pings arrive in between.
    await new Promise<void>((resolve) => afterThisTurn(resolve));
    return await this.#store.webhooks.selectPassing(filter, events);
  }

  /** Whether events were skipped since the last call. They have no row, so the cursor must be stored. */
  takeSkipped(): boolean {
    const hasSkipped = this.#hasSkipped;
    this.#hasSkipped = false;
    return hasSkipped;
  }

  /**
   * Calls `mustWait` for each event, oldest first. An event for which it returns false leaves the queue: the caller has
   * started or stored it.
   */
  keepWaiting(mustWait: (event: StoredUplink) => boolean): void {
    this.#waiting = this.#waiting.filter((event) => {
      if (mustWait(event)) return true;
      if (!this.#started.has(event.id)) this.#open.end(event.id);
      return false;
    });
  }

  /** Must be called when the event's first attempt starts. */
  started(event: StoredUplink): void {
    this.#started.set(event.id, event);
  }

  /** Must be called when the event's first attempt has an outcome. */
  concluded({ id }: StoredUplink): void {
    this.#started.delete(id);
    this.#open.end(id);
  }

  /** Puts an event back into its old place, since its attempt was not made. Does nothing if the event was forgotten. */
  putBack(event: StoredUplink): void {
    if (!this.#started.delete(event.id)) return;
    const nextIndex = this.#waiting.findIndex(({ id }) => id > event.id);
    this.#waiting.splice(nextIndex === -1 ? this.#waiting.length : nextIndex, 0, event);
  }

  /** Drops a lock's events, which were erased from the log. */
  forgetLock(deviceId: number): void {
    this.#forgetCount += 1;
    this.keepWaiting((event) => event.deviceId !== deviceId);
    for (const event of this.#started.values()) if (event.deviceId === deviceId) this.concluded(event);
  }
}
