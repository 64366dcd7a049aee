/**
 * Puts locks in an order while they are looked at: locks with the same value form a group, and only the values are
 * sorted at the end. Most orders have few values (seven troubles, a hundred battery levels), so that sorting 10,000
 * locks costs hardly more than looking at them. Pure, except for the turns that long sorting takes.
 */
import { compareValues, type LockOrder, type Place } from './lock-order.js';
import type { ReadTurns } from './read-turns.js';
import { sortInTurns } from './sort-in-turns.js';

/** The locks of one list, grouped by the value that the list is sorted by. */
export class OrderGroups {
  readonly #order: LockOrder;
  /** The device ids of each value's locks, in the order of their MACs. */
  readonly #groups = new Map<Place['value'], number[]>();
  #count = 0;

  constructor(order: LockOrder) {
    this.#order = order;
  }

  /** Adds a lock. Locks must be added in the order of their MACs. */
  add(value: Place['value'], deviceId: number): void {
    this.#count += 1;
    const group = this.#groups.get(value);
    if (group === undefined) this.#groups.set(value, [deviceId]);
    else group.push(deviceId);
  }

  /** The ids of all locks in the order. Rejects with the signal's reason if the signal is aborted. */
  async sorted(turns: ReadTurns, signal?: AbortSignal): Promise<Uint32Array> {
    const { key, isDescending } = this.#order;
    const compare = compareValues(isDescending);
    const values = await sortInTurns([...this.#groups.keys()], compare, turns, signal);
    const ids = new Uint32Array(this.#count);
    let length = 0;
    for (const value of values) {
      ids.set(this.#groups.get(value) ?? [], length);
      length += this.#groups.get(value)?.length ?? 0;
    }
    // All locks have the same value in the order of MACs: they are one group, in ascending order.
    return key === 'mac' && isDescending ? ids.reverse() : ids;
  }
}
