/**
 * A URL's queue: the merchant's events behind the URL's cursor, in order of arrival, as far as they were read and have
 * no outcome yet.
 */
import type { Store, StoredUplink, WebhookUrl } from '../../store/contract/store.js';

/** Events of one read. */
const READ_AT_ONCE = 128;

export class EventQueue {
  readonly #url: WebhookUrl;
  readonly #store: Store;
  /** Events that were read and not attempted yet; oldest first. */
  #waiting: StoredUplink[] = [];
  /** Events whose first attempt was started and has no outcome yet, by id. */
  readonly #started = new Map<number, StoredUplink>();
  /** Events after the cursor that had an outcome before this start. Undefined until they were read. */
  #concludedBefore: Set<number> | undefined;
  /** The last event that was read. */
  #position: number;
  /** How often events were forgotten: a read that spans one may return events that are gone. */
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

  /** Reads more events. Returns whether there may be any. @throws StoreFailure */
  async readOn(): Promise<boolean> {
    this.#concludedBefore ??= new Set(await this.#store.readOutcomesAfter(this.#url.id, this.#position));
    const concluded = this.#concludedBefore;
    const forgets = this.#forgetCount;
    const events = await this.#store.readEvents(this.#url.merchantId, this.#position, READ_AT_ONCE);
    if (forgets !== this.#forgetCount) return true;
    this.#position = events.at(-1)?.id ?? this.#position;
    this.#waiting.push(...events.filter(({ id }) => !concluded.delete(id)));
    return events.length > 0;
  }

  /** Asks `waits` of each event, oldest first, whether it stays. The others were started, or given a row. */
  sift(waits: (event: StoredUplink) => boolean): void {
    this.#waiting = this.#waiting.filter(waits);
  }

  /** Its first attempt is being made. */
  started(event: StoredUplink): void {
    this.#started.set(event.id, event);
  }

  /** Its first attempt has an outcome. */
  concluded({ id }: StoredUplink): void {
    this.#started.delete(id);
  }

  /** The attempt was not made: the event returns to its old place, unless it was forgotten meanwhile. */
  putBack(event: StoredUplink): void {
    if (!this.#started.delete(event.id)) return;
    const after = this.#waiting.findIndex(({ id }) => id > event.id);
    this.#waiting.splice(after === -1 ? this.#waiting.length : after, 0, event);
  }

  /** Drops a lock's events, which were erased from the log. */
  forget(deviceId: number): void {
    this.#forgetCount += 1;
    this.#waiting = this.#waiting.filter((event) => event.deviceId !== deviceId);
    for (const event of this.#started.values()) if (event.deviceId === deviceId) this.#started.delete(event.id);
  }
}
