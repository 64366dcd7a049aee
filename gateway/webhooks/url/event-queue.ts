/**
 * The event queue of one URL: the merchant's events that were read from the store's log of uplinks and have no outcome
 * yet, in order of arrival. An event is a stored ping; its id is the uplink's. The URL's cursor is the id before its
 * oldest event without an outcome, and the queue starts there. Events that the URL's filter leaves out are skipped.
 */
import { afterThisTurn } from '../../../proto/clock.js';
import type { Store, StoredUplink, WebhookUrl } from '../../store/contract/store.js';

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
  /** The id of the last event that was read. */
  #lastReadId: number;
  /** Events that the URL's filter leaves out were read since the last call of {@link takeSkipped}. */
  #hasSkipped = false;
  /** Counts calls of {@link forgetLock}: a read during such a call may return erased events. */
  #forgetCount = 0;

  constructor(url: WebhookUrl, store: Store) {
    this.#url = url;
    this.#store = store;
    this.#lastReadId = url.cursor;
  }

  /** Events that were read and wait for their first attempt. */
  get length(): number {
    return this.#waiting.length;
  }

  /** The id before the oldest event without an outcome. */
  get cursor(): number {
    let oldest = this.#waiting[0]?.id ?? this.#lastReadId + 1;
    for (const id of this.#started.keys()) oldest = Math.min(oldest, id);
    return oldest - 1;
  }

  /** Reads the next events. Returns whether there may be more. @throws StoreFailure */
  async readMore(): Promise<boolean> {
    this.#concludedBefore ??= new Set(await this.#store.readOutcomesAfter(this.#url.id, this.#lastReadId));
    const concluded = this.#concludedBefore;
    const forgetCountBefore = this.#forgetCount;
    const { merchantId, filter } = this.#url;
    const kinds = filter?.events == null ? 'pings' : 'all';
    const events = await this.#store.readEvents(merchantId, this.#lastReadId, EVENTS_PER_READ, kinds);
    const passing = await this.#passingOf(events);
    if (forgetCountBefore !== this.#forgetCount) return true;
    this.#lastReadId = events.at(-1)?.id ?? this.#lastReadId;
    if (passing.length < events.length) this.#hasSkipped = true;
    this.#waiting.push(...passing.filter(({ id }) => !concluded.delete(id)));
    return events.length > 0;
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
    this.#waiting = this.#waiting.filter(mustWait);
  }

  /** Must be called when the event's first attempt starts. */
  started(event: StoredUplink): void {
    this.#started.set(event.id, event);
  }

  /** Must be called when the event's first attempt has an outcome. */
  concluded({ id }: StoredUplink): void {
    this.#started.delete(id);
  }

  /** Returns an event whose attempt was not made to its old place, unless the event was forgotten meanwhile. */
  putBack(event: StoredUplink): void {
    if (!this.#started.delete(event.id)) return;
    const nextIndex = this.#waiting.findIndex(({ id }) => id > event.id);
    this.#waiting.splice(nextIndex === -1 ? this.#waiting.length : nextIndex, 0, event);
  }

  /** Drops a lock's events, which were erased from the log. */
  forgetLock(deviceId: number): void {
    this.#forgetCount += 1;
    this.#waiting = this.#waiting.filter((event) => event.deviceId !== deviceId);
    for (const event of this.#started.values()) if (event.deviceId === deviceId) this.#started.delete(event.id);
  }
}
