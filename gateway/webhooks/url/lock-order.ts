/**
 * The locks whose later events wait at one URL, because an earlier one of theirs is pending there: for URLs that keep
 * each lock's order (interfaces.md §3).
 *
 * What waits is parked: it gets a row, due at once, and the store hands out the oldest pending of each lock alone. So
 * the URL's cursor goes on, no other lock waits, and the order outlives a restart without anything more being noted.
 */
import type { WebhookStore } from '../../store/contract/webhook-store.js';

export class LockOrder {
  readonly #urlId: number;
  readonly #store: WebhookStore;
  readonly #held = new Set<number>();
  /** Rows on their way into the store, by lock. */
  readonly #parking = new Map<number, number>();
  /** How often somebody may have changed what is pending, and what of it was looked at. */
  #marks = 1;
  #seenMarks = 0;

  constructor(urlId: number, store: WebhookStore) {
    this.#urlId = urlId;
    this.#store = store;
  }

  /** Somebody else may have made deliveries pending: {@link load} is to look. */
  markStale(): void {
    this.#marks += 1;
  }

  /** To be called before events are started, and again where it fails. @throws StoreFailure */
  async load(): Promise<void> {
    if (this.#seenMarks === this.#marks) return;
    const marks = this.#marks;
    for (const deviceId of await this.#store.readPendingLocks(this.#urlId)) this.#held.add(deviceId);
    // What was marked during the read may not be in it; what could not be read is not seen.
    this.#seenMarks = marks;
  }

  isHeld(deviceId: number): boolean {
    return this.#held.has(deviceId);
  }

  /** From now on its events are parked. */
  hold(deviceId: number): void {
    this.#held.add(deviceId);
  }

  /** An event of this lock is being parked: to be called before its row is written; {@link parked} after. */
  parking(deviceId: number): void {
    this.#parking.set(deviceId, (this.#parking.get(deviceId) ?? 0) + 1);
  }

  parked(deviceId: number): void {
    const left = (this.#parking.get(deviceId) ?? 1) - 1;
    if (left === 0) this.#parking.delete(deviceId);
    else this.#parking.set(deviceId, left);
  }

  /** Lets the lock go where nothing of it is pending any more. To be called when a delivery of it has an end. */
  async release(deviceId: number): Promise<void> {
    if (!this.#held.has(deviceId) || this.#parking.has(deviceId)) return;
    const isPending = await this.#store.findPending(this.#urlId, deviceId);
    if (!isPending && !this.#parking.has(deviceId)) this.#held.delete(deviceId);
  }
}
