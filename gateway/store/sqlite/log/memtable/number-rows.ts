/**
 * A growing table of numbers in one block of memory, which the garbage collector does not scan. Stored as JavaScript
 * arrays, the keys of the newest hundred thousand uplinks would be most of the garbage collector's work, for which
 * pings wait.
 */

/** The initial capacity, in rows. */
const INITIAL_ROWS = 8;

export class NumberRows {
  readonly #columnCount: number;
  #values: Float64Array;
  #length = 0;

  /** @param columnCount how many numbers a row has */
  constructor(columnCount: number) {
    this.#columnCount = columnCount;
    this.#values = new Float64Array(columnCount * INITIAL_ROWS);
  }

  /** The number of rows. */
  get length(): number {
    return this.#length;
  }

  /** Returns the number in an existing row and column. */
  at(row: number, column: number): number {
    return this.#values[row * this.#columnCount + column] as number;
  }

  /** Inserts a row of zeros before this one. */
  insert(row: number): void {
    const start = row * this.#columnCount;
    const end = this.#length * this.#columnCount;
    if (end === this.#values.length) {
      const larger = new Float64Array(end * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    if (start < end) this.#values.copyWithin(start + this.#columnCount, start, end);
    this.#values.fill(0, start, start + this.#columnCount);
    this.#length += 1;
  }

  set(row: number, column: number, value: number): void {
    this.#values[row * this.#columnCount + column] = value;
  }

  /** Removes a row. */
  remove(row: number): void {
    const columnCount = this.#columnCount;
    this.#values.copyWithin(row * columnCount, (row + 1) * columnCount, this.#length * columnCount);
    this.#length -= 1;
  }
}
