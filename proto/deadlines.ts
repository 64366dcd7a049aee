/**
 * A queue of items by due time, as a binary heap. When an item's time changes, its old entry stays in the heap as a
 * stale entry. Stale entries are skipped when they become due, and removed when there are many of them.
 */

/** An item of the queue. Only {@link Deadlines.set} may change `dueMs` while the item is in the queue. */
export interface Due {
  /** Ms since the epoch. An entry in the heap with another time for this item is stale. */
  dueMs: number;
}

/** With fewer entries than this, stale entries are not removed: they take little memory. */
const MIN_CLEANUP_ENTRIES = 1024;

/** See the top of this file. */
export class Deadlines<T extends Due> {
  #times: number[] = [];
  #items: T[] = [];
  /** With more entries than this, stale entries are removed. */
  #cleanupEntries = MIN_CLEANUP_ENTRIES;

  /** The number of entries, including stale ones. */
  get entries(): number {
    return this.#times.length;
  }

  /** The earliest time; Infinity if there is no entry. It may be the time of a stale entry. */
  get firstMs(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Sets when an item is due. */
  set(item: T, dueMs: number): void {
    item.dueMs = dueMs;
    let index = this.#times.length;
    this.#times.push(dueMs);
    this.#items.push(item);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if ((this.#times[parent] as number) <= dueMs) break;
      this.#swap(index, parent);
      index = parent;
    }
    if (this.#times.length > this.#cleanupEntries) this.#removeStaleEntries();
  }

  /** Without this, an item whose time changes again and again would fill the memory with stale entries. */
  #removeStaleEntries(): void {
    const items = [...new Set(this.#items.filter((item, index) => item.dueMs === this.#times[index]))];
    // A sorted list is a valid heap.
    items.sort((a, b) => a.dueMs - b.dueMs);
    this.#items = items;
    this.#times = items.map(({ dueMs }) => dueMs);
    this.#cleanupEntries = Math.max(MIN_CLEANUP_ENTRIES, 2 * items.length);
  }

  /** Removes and returns the first item whose time is before `nowMs`; undefined if there is none. */
  take(nowMs: number): T | undefined {
    while (this.firstMs < nowMs) {
      const [timeMs, item] = [this.#times[0] as number, this.#items[0] as T];
      this.#removeFirst();
      if (item.dueMs === timeMs) return item;
    }
    return undefined;
  }

  #removeFirst(): void {
    const time = this.#times.pop() as number;
    const item = this.#items.pop() as T;
    const { length } = this.#times;
    if (length === 0) return;
    this.#times[0] = time;
    this.#items[0] = item;
    for (let index = 0; ; ) {
      let smallest = index;
      for (const child of [2 * index + 1, 2 * index + 2]) {
        if (child < length && (this.#times[child] as number) < (this.#times[smallest] as number)) smallest = child;
      }
      if (smallest === index) return;
      this.#swap(index, smallest);
      index = smallest;
    }
  }

  #swap(a: number, b: number): void {
    const [time, item] = [this.#times[a] as number, this.#items[a] as T];
    this.#times[a] = this.#times[b] as number;
    this.#items[a] = this.#items[b] as T;
    this.#times[b] = time;
    this.#items[b] = item;
  }
}
