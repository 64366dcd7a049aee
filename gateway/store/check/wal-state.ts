/**
 * The write-ahead log beside a store: what was committed and is not in the file yet. Its frames carry the salt of the
 * round that they belong to; behind them there may be some of an earlier round.
 *
 * https://www.sqlite.org/fileformat2.html#the_write_ahead_log
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import type { CheckContext, Looked } from './check-context.js';

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_SIZE_AT = 8;
const SALT_AT = 16;
const FRAME_SALT_AT = 8;
const SALT_BYTES = 8;

/** Counts the frames of this round. */
export function walState(file: string, { progress }: Omit<CheckContext, 'db'>): Looked {
  const wal = `${file}-wal`;
  if (!existsSync(wal)) return { count: 0, note: 'there is none: it was closed' };
  const handle = openSync(wal, 'r');
  try {
    const { size } = fstatSync(handle);
    const header = Buffer.alloc(WAL_HEADER_BYTES);
    if (readSync(handle, header, 0, WAL_HEADER_BYTES, 0) < WAL_HEADER_BYTES)
      return { count: 0, note: 'it is empty: it was closed' };
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT);
    const salt = header.subarray(SALT_AT, SALT_AT + SALT_BYTES);
    const frame = Buffer.alloc(FRAME_HEADER_BYTES);
    let count = 0;
    for (let at = WAL_HEADER_BYTES; at + frameBytes <= size; at += frameBytes) {
      readSync(handle, frame, 0, FRAME_HEADER_BYTES, at);
      if (!frame.subarray(FRAME_SALT_AT, FRAME_SALT_AT + SALT_BYTES).equals(salt)) break;
      count += 1;
      progress(count);
    }
    return { count, note: 'in use, or left by a process that was killed; what is in it counts' };
  } finally {
    closeSync(handle);
  }
}
