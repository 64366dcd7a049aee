/**
 * Who is due first, of many: a binary heap by time. A time that is moved leaves its old entry behind, which is passed
 * over when its turn comes, or thrown out where there are many such.
 */

export interface Due {
  /** Ms since the epoch; the entry in the heap that has this very time is the one that counts. */
  dueMs: number;
}

/** With fewer entries than this nobody looks for old ones. */
const FEW = 1024;

export class Deadlines<T extends Due> {
  #times: number[] = [];
  #items: T[] = [];
  /** With more entries than this the old ones are thrown out. */
  #most = FEW;

  /** How many entries there are, old ones too: at most twice as many as items, and {@link FEW}. */
  get entries(): number {
    return this.#times.length;
  }

  /** The earliest time; Infinity where nobody is due. It may be one that no longer counts. */
  get firstMs(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Sets when an item is due. */
  set(item: T, dueMs: number): void {
    item.dueMs = dueMs;
    let at = this.#times.length;
    this.#times.push(dueMs);
    this.#items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((this.#times[parent] as number) <= dueMs) break;
      this.#swap(at, parent);
      at = parent;
    }
    if (this.#times.length > this.#most) this.#throwOutOld();
  }

  /** An item that is moved all day would fill the memory with times at which nothing is due. */
  #throwOutOld(): void {
    const items = [...new Set(this.#items.filter((item, at) => item.dueMs === this.#times[at]))];
    // What is sorted is a heap.
    items.sort((one, other) => one.dueMs - other.dueMs);
    this.#items = items;
    this.#times = items.map(({ dueMs }) => dueMs);
    this.#most = Math.max(FEW, 2 * items.length);
  }

  /** Takes the first item whose time is before `nowMs`; undefined where there is none. */
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
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < length && (this.#times[child] as number) < (this.#times[least] as number)) least = child;
      }
      if (least === at) return;
      this.#swap(at, least);
      at = least;
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
