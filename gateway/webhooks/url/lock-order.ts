/**
 * Tracks the blocked locks of one ordered URL, which gets each lock's events in order (interfaces.md §3).
 *
 * A lock is *blocked* while one of its events is pending at the URL: its later events wait. They get rows that are due
 * at once, and the store returns only the oldest pending event of each lock. So the URL's cursor moves on, no other
 * lock waits, and the order survives a restart, since it follows from the rows alone.
 */
import type { WebhookStore } from '../../store/contract/webhook-store.js';

export class LockOrder {
  readonly #urlId: number;
  readonly #store: WebhookStore;
  readonly #blocked = new Set<number>();
  /** The number of rows being written for each lock. */
  readonly #rowsBeingStored = new Map<number, number>();
  /** Counts changes to pending deliveries that the URL's worker did not make. */
  #changes = 1;
  /** The value of `#changes` that the last read of the store covers. */
  #changesRead = 0;

  constructor(urlId: number, store: WebhookStore) {
    this.#urlId = urlId;
    this.#store = store;
  }

  /** Must be called after an operator made deliveries pending: {@link load} then reads the store again. */
  markStale(): void {
    this.#changes += 1;
  }

  /** Reads the blocked locks if they may have changed. Must succeed before events are started. @throws StoreFailure */
  async load(): Promise<void> {
    if (this.#changesRead === this.#changes) return;
    const changes = this.#changes;
    for (const deviceId of await this.#store.readPendingLocks(this.#urlId)) this.#blocked.add(deviceId);
    // A change during the read may be missing in its result.
    this.#changesRead = changes;
  }

  isBlocked(deviceId: number): boolean {
    return this.#blocked.has(deviceId);
  }

  /** The lock's later events wait from now on. */
  block(deviceId: number): void {
    this.#blocked.add(deviceId);
  }

  /** Must be called before the row of a waiting event of this lock is written; {@link stored} follows. */
  storing(deviceId: number): void {
    this.#rowsBeingStored.set(deviceId, (this.#rowsBeingStored.get(deviceId) ?? 0) + 1);
  }

  /** Must be called when the row was written or refused. */
  stored(deviceId: number): void {
    const left = (this.#rowsBeingStored.get(deviceId) ?? 1) - 1;
    if (left === 0) this.#rowsBeingStored.delete(deviceId);
    else this.#rowsBeingStored.set(deviceId, left);
  }

  /** Unblocks the lock if none of its events is pending. Must be called when one of its deliveries ends. */
  async release(deviceId: number): Promise<void> {
    if (!this.#blocked.has(deviceId) || this.#rowsBeingStored.has(deviceId)) return;
    const isPending = await this.#store.findPending(this.#urlId, deviceId);
    if (!isPending && !this.#rowsBeingStored.has(deviceId)) this.#blocked.delete(deviceId);
  }
}
