/**
 * The checksum of each row of the log (the table `uplink`), which reveals bytes that the disk changed: SQLite's
 * integrity check covers the structure of pages, not their content.
 *
 * The checksum is the CRC-32 of the uplink as packed by packed-commit.ts, including its id, so a row in the wrong place
 * is found too. Doubles are packed in the processor's byte order, which is little-endian wherever Node.js runs.
 */
import { crc32 } from 'node:zlib';
import { UPLINK_MAX_BYTES } from '../../../proto/wire/codec.js';
import { HEADER_WORDS, packUplink, UPLINK_WORD, WORD_BYTES, wordsOf } from './packed-commit.js';

/** The columns of `uplink` that the checksum covers: all but `sum`. */
export interface SummedRow {
  readonly id: number;
  readonly device_id: number;
  readonly merchant_id: number;
  readonly credential_id: number;
  readonly boot: number;
  readonly sequence: number;
  /** 8 bytes, one word; empty if the uplink was erased. */
  readonly digest: Uint8Array;
  readonly kind: number;
  readonly bytes: Uint8Array;
  readonly received_at_ms: number;
  readonly buffered: number;
}

/** A reused buffer for an uplink of any allowed length; only a damaged row can be longer and needs a new buffer. */
const SHARED_WORDS = new Float64Array(wordsOf(UPLINK_MAX_BYTES));
const SHARED_BYTES = Buffer.from(SHARED_WORDS.buffer);

/** Returns the value for a row's column `sum`: a whole number below 2 ** 32. */
export function uplinkSum(row: SummedRow): number {
  const { digest, bytes } = row;
  const fitsShared = bytes.length <= UPLINK_MAX_BYTES;
  const doubles = fitsShared ? SHARED_WORDS : new Float64Array(wordsOf(bytes.length));
  const packed = fitsShared ? SHARED_BYTES : Buffer.from(doubles.buffer);
  const uplink = {
    deviceId: row.device_id,
    merchantId: row.merchant_id,
    credentialId: row.credential_id,
    boot: row.boot,
    sequence: row.sequence,
    kind: row.kind,
    bytes,
    receivedAtMs: row.received_at_ms,
    buffered: row.buffered === 1,
  };
  packUplink(uplink, doubles, packed, 0);
  // An erased row has no digest, which is packed as 0; the shared buffer still has the digest of the row before.
  doubles[UPLINK_WORD.digest] = 0;
  packed.set(digest, UPLINK_WORD.digest * WORD_BYTES);
  doubles[UPLINK_WORD.id] = row.id;
  return packedSum(doubles, 0);
}

/**
 * Whether a stored row is unchanged since it was written (quality.md §2, "a flipped bit in a stored ping"). A column of
 * a damaged row may have any value of any type, so an exception counts as damage.
 */
export function matchesChecksum(row: SummedRow & { readonly sum: number | null }): boolean {
  try {
    return hasValidTypes(row) && uplinkSum(row) === row.sum;
  } catch {
    return false;
  }
}

/**
 * Whether the columns have values of the types that are written. The checksum alone can't tell: a flipped bit that
 * turns the number 0 into an empty blob leaves it unchanged, since both are packed as 0.
 */
export function hasValidTypes(row: SummedRow): boolean {
  return (
    typeof row.device_id === 'number' &&
    typeof row.merchant_id === 'number' &&
    typeof row.credential_id === 'number' &&
    typeof row.boot === 'number' &&
    typeof row.sequence === 'number' &&
    typeof row.kind === 'number' &&
    typeof row.received_at_ms === 'number' &&
    (row.buffered === 0 || row.buffered === 1) &&
    row.digest instanceof Uint8Array &&
    row.bytes instanceof Uint8Array
  );
}

/** Returns the checksum of the uplink that is packed from the word `start` on; its id must be set. */
export function packedSum(doubles: Float64Array, start: number): number {
  const length = doubles[start + UPLINK_WORD.length] as number;
  return crc32(Buffer.from(doubles.buffer, start * WORD_BYTES, HEADER_WORDS * WORD_BYTES + length));
}
