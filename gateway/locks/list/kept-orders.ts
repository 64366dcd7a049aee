/**
 * Remembers the order of the locks in which a list was sorted for its first page. So further pages neither repeat nor
 * miss a lock, although pings change the values that the list is sorted by. A limited number of orders is kept, in
 * memory only. A list whose order was dropped continues in the present order, after the place of the last lock shown.
 */
import { randomBytes } from 'node:crypto';

/** Maximum number of locks in all kept orders together; each takes four bytes. */
const MAX_KEPT_LOCKS = 2_000_000;
/** Maximum number of kept orders; a client that requests the same first page repeatedly makes one each time. */
const MAX_KEPT_ORDERS = 200;

interface KeptOrder {
  /** The list with its filters, as text. */
  readonly listKey: string;
  readonly deviceIds: Uint32Array;
}

export class KeptOrders {
  /** Distinguishes the orders of this process from those of others. */
  readonly #processId = randomBytes(4).toString('hex');
  /** By id, least recently used first. */
  readonly #orders = new Map<string, KeptOrder>();
  #lastNumber = 0;
  #keptLocks = 0;

  /**
   * Keeps an order, and returns its id. @param listKey the list with its filters, as text; only the same list finds the
   * order
   */
  keep(listKey: string, deviceIds: Uint32Array): string {
    this.#lastNumber += 1;
    const id = `${this.#processId}-${this.#lastNumber}`;
    this.#orders.set(id, { listKey, deviceIds });
    this.#keptLocks += deviceIds.length;
    for (const oldest of this.#orders.keys()) {
      if (this.#keptLocks <= MAX_KEPT_LOCKS && this.#orders.size <= MAX_KEPT_ORDERS) break;
      this.#drop(oldest);
    }
    return id;
  }

  /** The kept order of this list; undefined if it was dropped, or belongs to another list. */
  find(listKey: string, id: string): Uint32Array | undefined {
    const kept = this.#orders.get(id);
    if (kept?.listKey !== listKey) return undefined;
    this.#orders.delete(id);
    this.#orders.set(id, kept);
    return kept.deviceIds;
  }

  #drop(id: string): void {
    this.#keptLocks -= this.#orders.get(id)?.deviceIds.length ?? 0;
    this.#orders.delete(id);
  }
}
