/**
 * The blocked locks of one URL that keeps each lock's order (interfaces.md §3): those whose later events wait, since an
 * earlier event of theirs is pending there.
 *
 * A lock becomes *blocked* when the outcome of one of its events is pending, and stays so until none of its events is.
 * Its later events get rows that are due at once, and the store hands out only the oldest pending event of each lock.
 * So the URL's cursor moves on, no other lock waits, and the order survives a restart: the rows are all there is to
 * know.
 */
import type { WebhookStore } from '../../store/contract/webhook-store.js';

export class LockOrder {
  readonly #urlId: number;
  readonly #store: WebhookStore;
  readonly #blocked = new Set<number>();
  /** How many rows of each lock are being written. */
  readonly #beingStored = new Map<number, number>();
  /** Counts the changes to pending deliveries by others, and how many of them the last read of the store covers. */
  #changes = 1;
  #changesRead = 0;

  constructor(urlId: number, store: WebhookStore) {
    this.#urlId = urlId;
    this.#store = store;
  }

  /** Somebody else may have made deliveries pending: {@link load} reads the store again. */
  markStale(): void {
    this.#changes += 1;
  }

  /** To be called before events are started, and again where it fails. @throws StoreFailure */
  async load(): Promise<void> {
    if (this.#changesRead === this.#changes) return;
    const changes = this.#changes;
    for (const deviceId of await this.#store.readPendingLocks(this.#urlId)) this.#blocked.add(deviceId);
    // A change during the read may be missing from it.
    this.#changesRead = changes;
  }

  isBlocked(deviceId: number): boolean {
    return this.#blocked.has(deviceId);
  }

  /** The lock's later events wait from now on. */
  block(deviceId: number): void {
    this.#blocked.add(deviceId);
  }

  /** The row of a waiting event of this lock is about to be written; {@link stored} follows. */
  storing(deviceId: number): void {
    this.#beingStored.set(deviceId, (this.#beingStored.get(deviceId) ?? 0) + 1);
  }

  /** The row was written, or refused. */
  stored(deviceId: number): void {
    const left = (this.#beingStored.get(deviceId) ?? 1) - 1;
    if (left === 0) this.#beingStored.delete(deviceId);
    else this.#beingStored.set(deviceId, left);
  }

  /** Unblocks the lock where none of its events is pending any more. To be called when one of its deliveries ends. */
  async release(deviceId: number): Promise<void> {
    if (!this.#blocked.has(deviceId) || this.#beingStored.has(deviceId)) return;
    const isPending = await this.#store.findPending(this.#urlId, deviceId);
    if (!isPending && !this.#beingStored.has(deviceId)) this.#blocked.delete(deviceId);
  }
}
