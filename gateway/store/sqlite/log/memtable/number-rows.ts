/**
 * A growing table of numbers in one block of memory, which the garbage collector does not scan. As JavaScript arrays,
 * the keys of the newest hundred thousand uplinks were most of what the garbage collector had to mark and move, while
 * pings waited.
 */

/** The initial capacity, in rows. */
const INITIAL_ROWS = 8;

export class NumberRows {
  readonly #width: number;
  #values: Float64Array;
  #length = 0;

  /** `width`: how many numbers a row has. */
  constructor(width: number) {
    this.#width = width;
    this.#values = new Float64Array(width * INITIAL_ROWS);
  }

  /** The number of rows. */
  get length(): number {
    return this.#length;
  }

  /** Returns the number in an existing row and column. */
  at(row: number, column: number): number {
    return this.#values[row * this.#width + column] as number;
  }

  /** Inserts a row of zeros before this one. */
  insert(row: number): void {
    const from = row * this.#width;
    const end = this.#length * this.#width;
    if (end === this.#values.length) {
      const larger = new Float64Array(end * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    if (from < end) this.#values.copyWithin(from + this.#width, from, end);
    this.#values.fill(0, from, from + this.#width);
    this.#length += 1;
  }

  set(row: number, column: number, value: number): void {
    this.#values[row * this.#width + column] = value;
  }

  /** Removes a row. */
  remove(row: number): void {
    const width = this.#width;
    this.#values.copyWithin(row * width, (row + 1) * width, this.#length * width);
    this.#length -= 1;
  }
}
