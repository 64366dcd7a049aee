/**
 * Remembers in which order a list began, so that its further pages neither repeat nor miss a lock while pings change
 * what the list is sorted by. A bounded number of orders is kept, in memory only: a list whose order was dropped goes
 * on behind its last lock's place in the present order.
 */
import { randomBytes } from 'node:crypto';

/** All kept orders together name at most this many locks, four bytes each. */
const MAX_KEPT_LOCKS = 2_000_000;
/** Of one list with its filters, such as a page of the dashboard that asks again and again. */
const MAX_KEPT_ORDERS = 200;

interface KeptOrder {
  readonly list: string;
  readonly deviceIds: Uint32Array;
}

export class KeptOrders {
  /** Distinguishes the orders of this process from those of others. */
  readonly #processId = randomBytes(4).toString('hex');
  /** In the order of their last use. */
  readonly #orders = new Map<string, KeptOrder>();
  #lastNumber = 0;
  #keptLocks = 0;

  /** Keeps an order, and returns its id. @param list the list and its filters: only they find the order again */
  keep(list: string, deviceIds: Uint32Array): string {
    this.#lastNumber += 1;
    const id = `${this.#processId}-${this.#lastNumber}`;
    this.#orders.set(id, { list, deviceIds });
    this.#keptLocks += deviceIds.length;
    for (const oldest of this.#orders.keys()) {
      if (this.#keptLocks <= MAX_KEPT_LOCKS && this.#orders.size <= MAX_KEPT_ORDERS) break;
      this.#drop(oldest);
    }
    return id;
  }

  /** The kept order of this list; undefined if it was dropped, or belongs to another list. */
  find(list: string, id: string): Uint32Array | undefined {
    const kept = this.#orders.get(id);
    if (kept?.list !== list) return undefined;
    this.#orders.delete(id);
    this.#orders.set(id, kept);
    return kept.deviceIds;
  }

  #drop(id: string): void {
    this.#keptLocks -= this.#orders.get(id)?.deviceIds.length ?? 0;
    this.#orders.delete(id);
  }
}
