/** Ids of uplinks of one device, growing. */
import { NumberRows } from './number-rows.js';

export class IdList {
  readonly #rows = new NumberRows(1);

  get length(): number {
    return this.#rows.length;
  }

  /** The highest id; 0 where there is none. */
  get last(): number {
    const { length } = this;
    return length === 0 ? 0 : this.at(length - 1);
  }

  at(index: number): number {
    return this.#rows.at(index, 0);
  }

  /** The id is higher than all that are there. */
  add(id: number): void {
    const { length } = this;
    this.#rows.insert(length);
    this.#rows.set(length, 0, id);
  }

  /** Takes out this id and those after it. */
  dropFrom(id: number): void {
    while (this.last >= id && this.length > 0) this.#rows.remove(this.length - 1);
  }

  /** Those after an id. */
  after(id: number): number[] {
    const found: number[] = [];
    for (let at = this.length - 1; at >= 0 && this.at(at) > id; at--) found.push(this.at(at));
    return found.reverse();
  }
}
