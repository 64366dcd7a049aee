/**
 * The event queue of one URL: the merchant's events after the URL's cursor that were read from the log and have no
 * outcome yet, in order of arrival.
 */
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
  #position: number;
  /** Counts calls of {@link forgetLock}: a read during such a call may return erased events. */
  #forgetCount = 0;

  constructor(url: WebhookUrl, store: Store) {
    this.#url = url;
    this.#store = store;
    this.#position = url.cursor;
  }

  /** Events that were read and wait for their first attempt. */
  get length(): number {
    return this.#waiting.length;
  }

  /** The id before the oldest event without an outcome. */
  get cursor(): number {
    let oldest = this.#waiting[0]?.id ?? this.#position + 1;
    for (const id of this.#started.keys()) oldest = Math.min(oldest, id);
    return oldest - 1;
  }

  /** Reads the next events. Returns whether there may be more. @throws StoreFailure */
  async readMore(): Promise<boolean> {
    this.#concludedBefore ??= new Set(await this.#store.readOutcomesAfter(this.#url.id, this.#position));
    const concluded = this.#concludedBefore;
    const forgets = this.#forgetCount;
    const events = await this.#store.readEvents(this.#url.merchantId, this.#position, EVENTS_PER_READ);
    if (forgets !== this.#forgetCount) return true;
    this.#position = events.at(-1)?.id ?? this.#position;
    this.#waiting.push(...events.filter(({ id }) => !concluded.delete(id)));
    return events.length > 0;
  }

  /** Keeps the events for which `waits` returns true, called oldest first. The caller starts or stores the others. */
  keepWaiting(waits: (event: StoredUplink) => boolean): void {
    this.#waiting = this.#waiting.filter(waits);
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
    const after = this.#waiting.findIndex(({ id }) => id > event.id);
    this.#waiting.splice(after === -1 ? this.#waiting.length : after, 0, event);
  }

  /** Drops a lock's events, which were erased from the log. */
  forgetLock(deviceId: number): void {
    this.#forgetCount += 1;
    this.#waiting = this.#waiting.filter((event) => event.deviceId !== deviceId);
    for (const event of this.#started.values()) if (event.deviceId === deviceId) this.#started.delete(event.id);
  }
}
