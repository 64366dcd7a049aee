/** A checksum over the rows of a table in any order, to compare a table with its copy in another engine. */
import { crc32 } from 'node:zlib';

/** A value of a row. Whole numbers may be of either type. */
export type MovedValue = null | bigint | number | string | Uint8Array;

/** The sum is kept below this, so that it stays an exact number. */
const MODULUS = 2 ** 52;

/** Counts rows and adds up their checksums (CRC-32). */
export class RowsSum {
  #count = 0;
  #sum = 0;

  get count(): number {
    return this.#count;
  }

  get sum(): number {
    return this.#sum;
  }

  /** @param values the row's values, in an order that is the same for all rows and both engines */
  add(values: readonly MovedValue[]): void {
    this.#count += 1;
    let sum = 0;
    for (const value of values) sum = addValue(sum, value);
    this.#sum = (this.#sum + sum) % MODULUS;
  }

  equals(other: RowsSum): boolean {
    return this.#count === other.#count && this.#sum === other.#sum;
  }
}

/** Adds a value, with its kind and its length before it, so that no two rows are written the same way. */
function addValue(sum: number, value: MovedValue): number {
  if (value === null) return crc32('n', sum);
  if (value instanceof Uint8Array) return crc32(value, crc32(`b${value.length} `, sum));
  const [kind, text] = typeof value === 'string' ? ['t', value] : ['i', numberText(value)];
  return crc32(`${kind}${text.length} ${text}`, sum);
}

/** A number as text, the same for 5n and 5. */
function numberText(value: bigint | number): string {
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value).toString() : String(value);
}
