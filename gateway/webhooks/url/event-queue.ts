/**
 * A URL's line: the merchant's events behind the URL's cursor, in the order in which they came, as far as they were
 * read and have no outcome yet.
 */
import type { Store, StoredUplink, WebhookUrl } from '../../store/contract/store.js';

/** Events read at once. */
const READ_AT_ONCE = 128;

export class EventQueue {
  readonly #url: WebhookUrl;
  readonly #store: Store;
  /** Read, not attempted yet; oldest first. */
  #ahead: StoredUplink[] = [];
  /** Those whose first attempt was started and has no outcome yet, by id. */
  readonly #started = new Map<number, StoredUplink>();
  /** Events after the cursor that had an outcome in an earlier life: they are not new. */
  #known: Set<number> | undefined;
  /** The last event that was read. */
  #position: number;
  /** How often something was forgotten: what is being read meanwhile may be gone. */
  #forgets = 0;

  constructor(url: WebhookUrl, store: Store) {
    this.#url = url;
    this.#store = store;
    this.#position = url.cursor;
  }

  /** Events that were read and wait for their first attempt. */
  get length(): number {
    return this.#ahead.length;
  }

  /** Before the oldest event that has no outcome. */
  get cursor(): number {
    let oldest = this.#ahead[0]?.id ?? this.#position + 1;
    for (const id of this.#started.keys()) oldest = Math.min(oldest, id);
    return oldest - 1;
  }

  /** Reads on. Returns whether there was anything. @throws StoreFailure */
  async readOn(): Promise<boolean> {
    this.#known ??= new Set(await this.#store.readOutcomesAfter(this.#url.id, this.#position));
    const known = this.#known;
    const forgets = this.#forgets;
    const events = await this.#store.readEvents(this.#url.merchantId, this.#position, READ_AT_ONCE);
    if (forgets !== this.#forgets) return true;
    this.#position = events.at(-1)?.id ?? this.#position;
    this.#ahead.push(...events.filter(({ id }) => !known.delete(id)));
    return events.length > 0;
  }

  /** Asks of each event, oldest first, whether it waits on. The others leave the line: they were started, or parked. */
  sift(waits: (event: StoredUplink) => boolean): void {
    this.#ahead = this.#ahead.filter(waits);
  }

  /** Its first attempt is being made. */
  started(event: StoredUplink): void {
    this.#started.set(event.id, event);
  }

  /** Its first attempt has an outcome. */
  ended({ id }: StoredUplink): void {
    this.#started.delete(id);
  }

  /** No attempt came of it after all: it takes its old place, unless it was forgotten meanwhile. */
  putBack(event: StoredUplink): void {
    if (!this.#started.delete(event.id)) return;
    const after = this.#ahead.findIndex(({ id }) => id > event.id);
    this.#ahead.splice(after === -1 ? this.#ahead.length : after, 0, event);
  }

  /** A lock's events were erased from the log. */
  forget(deviceId: number): void {
    this.#forgets += 1;
    this.#ahead = this.#ahead.filter((event) => event.deviceId !== deviceId);
    for (const event of this.#started.values()) if (event.deviceId === deviceId) this.#started.delete(event.id);
  }
}
