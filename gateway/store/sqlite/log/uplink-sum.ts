/**
 * The checksum of each row of the log, by which bytes that a disk changed are found: SQLite's own check looks at the
 * structure of pages, not at their content.
 *
 * It is the CRC-32 of the uplink as packed-commit.ts packs it, its id included, so a row in another's place is found
 * too. Doubles are packed in the processor's byte order, which is little-endian wherever Node.js runs.
 */
import { crc32 } from 'node:zlib';
import type { Database } from 'better-sqlite3';
import { UPLINK_MAX_BYTES } from '../../../../proto/wire/codec.js';
import { packUplink, UPLINK_WORD, UPLINK_WORDS, WORD, wordsOf } from './packed-commit.js';

/** The columns of `uplink` that are summed: all but `sum`. */
export interface SummedRow {
  readonly id: number;
  readonly device_id: number;
  readonly merchant_id: number;
  readonly credential_id: number;
  readonly boot: number;
  readonly sequence: number;
  /** Empty where it was erased. */
  readonly digest: Uint8Array;
  readonly kind: number;
  readonly bytes: Uint8Array;
  readonly received_at_ms: number;
  readonly buffered: number;
}

/** A buffer for an uplink of any allowed length, so that a sum allocates nothing; only a damaged row is longer. */
const ROOM = new Float64Array(wordsOf(UPLINK_MAX_BYTES));
const ROOM_BYTES = Buffer.from(ROOM.buffer);

/** The sum for a row's column `sum`: a whole number below 2 ** 32. */
export function uplinkSum(row: SummedRow): number {
  const { digest, bytes } = row;
  const hasRoom = bytes.length <= UPLINK_MAX_BYTES;
  const doubles = hasRoom ? ROOM : new Float64Array(wordsOf(bytes.length));
  const packed = hasRoom ? ROOM_BYTES : Buffer.from(doubles.buffer);
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
  doubles[UPLINK_WORD.digest] = 0;
  packed.set(digest, UPLINK_WORD.digest * WORD);
  doubles[UPLINK_WORD.id] = row.id;
  return packedSum(doubles, 0);
}

/**
 * Whether a stored row is what was written (quality.md §2, "a flipped bit in a stored ping"). A column of a row that is
 * not may hold anything, of any type.
 */
export function fitsItsSum(row: SummedRow & { readonly sum: number | null }): boolean {
  try {
    return uplinkSum(row) === row.sum;
  } catch {
    return false;
  }
}

/** The sum of an uplink that is packed from the double `at` on, with its id. */
export function packedSum(doubles: Float64Array, at: number): number {
  const length = doubles[at + UPLINK_WORD.length] as number;
  return crc32(Buffer.from(doubles.buffer, at * WORD, UPLINK_WORDS * WORD + length));
}

/** The sum of a row `u` of `uplink` in SQL, on a connection that has {@link addUplinkSum}. */
export const UPLINK_SUM = `uplink_sum(id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes,
  received_at_ms, buffered)`;

/** Adds the SQL function `uplink_sum` to a connection. */
export function addUplinkSum(db: Database): void {
  db.function('uplink_sum', { deterministic: true, varargs: true }, (...values: unknown[]) => {
    const [id, device_id, merchant_id, credential_id, boot, sequence] = values as number[];
    const [digest, kind, bytes, received_at_ms, buffered] = values.slice(6) as [Buffer, number, Buffer, number, number];
    const numbers = { id, device_id, merchant_id, credential_id, boot, sequence } as SummedRow;
    return uplinkSum({ ...numbers, digest, kind, bytes, received_at_ms, buffered });
  });
}
