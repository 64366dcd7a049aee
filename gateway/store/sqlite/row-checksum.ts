/**
 * The checksum of a row (quality.md §2, bit rot): a CRC-32 over the name of its table and all of its values, each with
 * its type. A CRC detects every single flipped bit, and Node computes it in native code. It does not protect against
 * forged rows, since a forger can compute the CRC too.
 */
import { crc32 } from 'node:zlib';
import type { Database } from 'better-sqlite3';

/** A value that SQLite stores; whole numbers are bigint, so that all 64 bits count. */
export type SqlValue = null | bigint | number | string | Buffer;

/** The SQL function that triggers and statements call: `row_sum('table', column, …)`. */
export const ROW_CHECKSUM = 'row_sum';

/** The size of the buffer that is reused for each row; a longer row gets a new buffer. */
const SHARED_BUFFER_BYTES = 16 * 1024;
/** The maximum size of a value's head: a tag and a length, or a tag and 64 bits. */
const MAX_HEAD_BYTES = 9;
const sharedBuffer = Buffer.allocUnsafe(SHARED_BUFFER_BYTES);

/* The first byte of each value: its type. Stored checksums contain them, so they never change. */
const NULL_TAG = 0;
const INTEGER_TAG = 1;
const REAL_TAG = 2;
const TEXT_TAG = 3;
const BLOB_TAG = 4;

/**
 * Returns the checksum of these values, as an unsigned 32-bit number. The first value is the table's name, so that a
 * row in the wrong table does not match.
 */
export function rowChecksum(values: readonly SqlValue[]): number {
  let maxBytes = 0;
  for (const value of values) maxBytes += MAX_HEAD_BYTES + maxBytesOf(value);
  const buffer = maxBytes <= SHARED_BUFFER_BYTES ? sharedBuffer : Buffer.allocUnsafe(maxBytes);
  let end = 0;
  for (const value of values) end = put(buffer, end, value);
  return crc32(buffer.subarray(0, end));
}

/** Returns the checksum of a row of `device_state`; null if a value has the wrong type, as in a damaged row. */
export function stateSum(deviceId: number, state: string, throughUplinkId: number): number | null {
  const hasValidTypes = Number.isSafeInteger(throughUplinkId) && typeof state === 'string';
  return hasValidTypes ? rowChecksum(['device_state', BigInt(deviceId), state, BigInt(throughUplinkId)]) : null;
}

function maxBytesOf(value: SqlValue): number {
  // UTF-8 needs at most three bytes for each UTF-16 unit of a JavaScript string.
  if (typeof value === 'string') return value.length * 3;
  return value instanceof Buffer ? value.length : 0;
}

/** Writes a value with its tag at this offset. Returns the offset after it. */
function put(buffer: Buffer, offset: number, value: SqlValue): number {
  if (value === null) return buffer.writeUInt8(NULL_TAG, offset);
  if (typeof value === 'bigint') return buffer.writeBigInt64LE(value, buffer.writeUInt8(INTEGER_TAG, offset));
  if (typeof value === 'number') return buffer.writeDoubleLE(value, buffer.writeUInt8(REAL_TAG, offset));
  // A tag of 1 byte and a length of 4 bytes come before the content.
  const contentOffset = offset + 1 + 4;
  const isText = typeof value === 'string';
  const length = isText ? buffer.write(value, contentOffset, 'utf8') : value.copy(buffer, contentOffset);
  buffer.writeUInt32LE(length, buffer.writeUInt8(isText ? TEXT_TAG : BLOB_TAG, offset));
  return contentOffset + length;
}

/**
 * Adds the function `row_sum` to a connection. Every writing connection needs it: without the function, a write to a
 * table with these triggers fails, so no row is ever without a checksum.
 */
export function registerRowChecksum(db: Database): void {
  const options = { varargs: true, deterministic: true, safeIntegers: true };
  db.function(ROW_CHECKSUM, options, (...values: unknown[]) => rowChecksum(values as SqlValue[]));
}
