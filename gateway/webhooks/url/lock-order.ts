/**
 * Tracks the blocked locks of one ordered URL, which gets each lock's events (stored pings) in order (interfaces.md
 * §3).
 *
 * A lock is *blocked* while one of its events is pending at the URL, that is, waits for a retry: the lock's later
 * events wait as well. Each of them gets a row in the store's table of deliveries, due at once. The store offers only
 * the oldest pending event of each lock for an attempt. So other locks' events do not wait, and the order survives a
 * restart, since the table alone determines it.
 */
import type { WebhookStore } from '../../store/contract/webhook-store.js';

export class LockOrder {
  readonly #urlId: number;
  readonly #store: WebhookStore;
  readonly #blocked = new Set<number>();
  /** The number of each lock's delivery rows that are being written. */
  readonly #rowsBeingWritten = new Map<number, number>();
  /** Counts the calls of {@link markStale}, plus 1 so that the first {@link load} reads the store. */
  #staleCount = 1;
  /** The value of `#staleCount` when the store was last read. */
  #loadedStaleCount = 0;

  constructor(urlId: number, store: WebhookStore) {
    this.#urlId = urlId;
    this.#store = store;
  }

  /** Must be called after an operator made deliveries pending: {@link load} then reads the store again. */
  markStale(): void {
    this.#staleCount += 1;
  }

  /** Reads the blocked locks if they may have changed. Must succeed before events are started. @throws StoreFailure */
  async load(): Promise<void> {
    if (this.#loadedStaleCount === this.#staleCount) return;
    const staleCountBefore = this.#staleCount;
    for (const deviceId of await this.#store.readPendingLocks(this.#urlId)) this.#blocked.add(deviceId);
    // The result may lack a change that was made during the read: the next call reads again.
    this.#loadedStaleCount = staleCountBefore;
  }

  isBlocked(deviceId: number): boolean {
    return this.#blocked.has(deviceId);
  }

  /** Must be called when an event of the lock becomes pending: the lock's later events wait from now on. */
  block(deviceId: number): void {
    this.#blocked.add(deviceId);
  }

  /** Must be called before a delivery row for a waiting event of this lock is written. */
  rowWriteStarted(deviceId: number): void {
    this.#rowsBeingWritten.set(deviceId, (this.#rowsBeingWritten.get(deviceId) ?? 0) + 1);
  }

  /** Must be called when the store has written or refused that row. */
  rowWriteEnded(deviceId: number): void {
    const left = (this.#rowsBeingWritten.get(deviceId) ?? 1) - 1;
    if (left === 0) this.#rowsBeingWritten.delete(deviceId);
    else this.#rowsBeingWritten.set(deviceId, left);
  }

  /**
   * Unblocks the lock if none of its events is pending. Must be called when an event of the lock is delivered or given
   * up. While a row of the lock is being written, the lock stays blocked: the store would not find that event yet.
   */
  async release(deviceId: number): Promise<void> {
    if (!this.#blocked.has(deviceId) || this.#rowsBeingWritten.has(deviceId)) return;
    const isPending = await this.#store.hasPending(this.#urlId, deviceId);
    if (!isPending && !this.#rowsBeingWritten.has(deviceId)) this.#blocked.delete(deviceId);
  }
}
