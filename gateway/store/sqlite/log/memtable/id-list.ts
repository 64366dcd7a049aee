/** A growing list of the ids of one device's uplinks, in ascending order. Compact: it holds no JavaScript objects. */
import { NumberRows } from './number-rows.js';

/** A growing list of ids. */
export class IdList {
  readonly #rows = new NumberRows(1);

  get length(): number {
    return this.#rows.length;
  }

  /** The highest id; 0 if the list is empty. */
  get last(): number {
    const { length } = this;
    return length === 0 ? 0 : this.at(length - 1);
  }

  at(index: number): number {
    return this.#rows.at(index, 0);
  }

  /** Adds an id that is higher than all others. */
  add(id: number): void {
    const { length } = this;
    this.#rows.insert(length);
    this.#rows.set(length, 0, id);
  }

  /** Removes this id and all higher ones. */
  dropFrom(id: number): void {
    while (this.last >= id && this.length > 0) this.#rows.remove(this.length - 1);
  }

  /** Returns the ids above `id`. */
  after(id: number): number[] {
    const ids: number[] = [];
    for (let index = this.length - 1; index >= 0 && this.at(index) > id; index--) ids.push(this.at(index));
    return ids.reverse();
  }
}
