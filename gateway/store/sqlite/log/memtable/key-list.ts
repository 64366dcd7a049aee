/**
 * A list of the keys of one credential's uplinks with their ids, sorted by key. An uplink is a message of a lock; a
 * credential is what the lock, or a phone that acts for it, connects with. A key consists of two counters in the
 * uplink: boot, the lock's boots, and sequence, its uplinks since that boot.
 */
import { NumberRows } from './number-rows.js';

/** The columns of a row. */
const [BOOT, SEQUENCE, ID] = [0, 1, 2] as const;
const COLUMN_COUNT = 3;

export class KeyList {
  readonly #rows = new NumberRows(COLUMN_COUNT);

  get length(): number {
    return this.#rows.length;
  }

  /** The highest key; undefined if the list is empty. */
  get last(): { boot: number; sequence: number } | undefined {
    const { length } = this;
    return length === 0 ? undefined : { boot: this.bootAt(length - 1), sequence: this.sequenceAt(length - 1) };
  }

  bootAt(index: number): number {
    return this.#rows.at(index, BOOT);
  }

  sequenceAt(index: number): number {
    return this.#rows.at(index, SEQUENCE);
  }

  idAt(index: number): number {
    return this.#rows.at(index, ID);
  }

  /** Adds an uplink; usually its key is the highest. */
  add(boot: number, sequence: number, id: number): void {
    const { length } = this;
    const isLast = length === 0 || this.#compare(length - 1, boot, sequence) < 0;
    const index = isLast ? length : this.#firstFrom(boot, sequence);
    this.#rows.insert(index);
    this.#rows.set(index, BOOT, boot);
    this.#rows.set(index, SEQUENCE, sequence);
    this.#rows.set(index, ID, id);
  }

  /** Returns the ids with one key: more than one if their contents differ. */
  find(boot: number, sequence: number): number[] {
    const ids: number[] = [];
    const { length } = this;
    if (length === 0 || this.#compare(length - 1, boot, sequence) < 0) return ids;
    const first = this.#firstFrom(boot, sequence);
    for (let index = first; index < length && this.#compare(index, boot, sequence) === 0; index++)
      ids.push(this.idAt(index));
    return ids;
  }

  /** Removes the keys with this id or a higher id. */
  dropFrom(id: number): void {
    for (let index = this.length - 1; index >= 0; index--) if (this.idAt(index) >= id) this.#rows.remove(index);
  }

  /** Negative if the key at this index is lower than the given key, 0 if equal, positive if higher. */
  #compare(index: number, boot: number, sequence: number): number {
    return this.bootAt(index) - boot || this.sequenceAt(index) - sequence;
  }

  /** Returns the index of the first key that is not lower than this key. */
  #firstFrom(boot: number, sequence: number): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(middle, boot, sequence) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
