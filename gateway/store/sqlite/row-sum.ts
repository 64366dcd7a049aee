/**
 * The checksum of a row (quality.md §2, bit rot): CRC-32 over the name of its table and all of its values, each with
 * its type. A CRC finds every single flipped bit, and is what Node has in native code; it is no protection against
 * somebody who means to forge a row, who could forge its sum too.
 */
import { crc32 } from 'node:zlib';
import type { Database } from 'better-sqlite3';

/** What SQLite stores; whole numbers as bigint, so that all 64 bits count. */
export type SqlValue = null | bigint | number | string | Buffer;

/** The SQL function that triggers and statements call: `row_sum('table', column, …)`. */
export const ROW_SUM = 'row_sum';

/** A buffer for rows of usual length; a longer one gets its own. */
const USUAL_BYTES = 16 * 1024;
/** Tag and length, or tag and 64 bits. */
const HEAD_BYTES = 9;
const scratch = Buffer.allocUnsafe(USUAL_BYTES);

const NULL_TAG = 0;
const INTEGER_TAG = 1;
const REAL_TAG = 2;
const TEXT_TAG = 3;
const BLOB_TAG = 4;

/**
 * The sum of these values, as an unsigned 32-bit number. The first is the table's name, so that a row in another table
 * doesn't fit.
 */
export function rowSum(values: readonly SqlValue[]): number {
  let room = 0;
  for (const value of values) room += HEAD_BYTES + bytesAtMost(value);
  const buffer = room <= USUAL_BYTES ? scratch : Buffer.allocUnsafe(room);
  let at = 0;
  for (const value of values) at = put(buffer, at, value);
  return crc32(buffer.subarray(0, at));
}

/** The sum of a row of `device_state`; null where a value has the wrong type. */
export function stateSum(deviceId: number, state: string, through: number): number | null {
  const isRow = Number.isSafeInteger(through) && typeof state === 'string';
  return isRow ? rowSum(['device_state', BigInt(deviceId), state, BigInt(through)]) : null;
}

function bytesAtMost(value: SqlValue): number {
  // UTF-8 takes at most three bytes for each of JavaScript's units.
  if (typeof value === 'string') return value.length * 3;
  return value instanceof Buffer ? value.length : 0;
}

function put(buffer: Buffer, at: number, value: SqlValue): number {
  if (value === null) return buffer.writeUInt8(NULL_TAG, at);
  if (typeof value === 'bigint') return buffer.writeBigInt64LE(value, buffer.writeUInt8(INTEGER_TAG, at));
  if (typeof value === 'number') return buffer.writeDoubleLE(value, buffer.writeUInt8(REAL_TAG, at));
  const from = at + 1 + 4;
  const isText = typeof value === 'string';
  const length = isText ? buffer.write(value, from, 'utf8') : value.copy(buffer, from);
  buffer.writeUInt32LE(length, buffer.writeUInt8(isText ? TEXT_TAG : BLOB_TAG, at));
  return from + length;
}

/**
 * Adds `row_sum` to a connection. Every connection that writes needs it: without it, a write to a table whose triggers
 * call it fails, so no row is ever without a sum.
 */
export function registerRowSum(db: Database): void {
  const options = { varargs: true, deterministic: true, safeIntegers: true };
  db.function(ROW_SUM, options, (...values: unknown[]) => rowSum(values as SqlValue[]));
}
