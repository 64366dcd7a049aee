/**
 * Measures the disk alone: writes of the size of a commit, each followed by fdatasync. A durable PUBACK can’t take
 * less; quality.md §1 compares the row `ack` with it.
 */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import { monotonicMs } from '../../../proto/clock.js';
import { percentile } from '../measure.js';

/** The file is written from its beginning again after this many writes, as a write-ahead log is. */
const WRITES_PER_PASS = 64;
const MIN_WRITES = 100;

/**
 * Writes to a new file in the folder.
 *
 * @param writes how many writes; at least 100 are made, so that they have a 99th percentile
 * @param bytes the size of each
 * @returns the 99th percentile of the duration of a write with its fdatasync, ms
 */
export function diskWriteP99Ms(folder: string, writes: number, bytes: number): number {
  const file = path.join(folder, 'disk-writes');
  const handle = openSync(file, 'w');
  try {
    const content = Buffer.alloc(bytes, 0x5a);
    const writeAt = (index: number): void => {
      writeSync(handle, content, 0, bytes, (index % WRITES_PER_PASS) * bytes);
      fdatasyncSync(handle);
    };
    // Unmeasured: it gives the file its blocks, which a write-ahead log that is written again has too.
    for (let index = 0; index < WRITES_PER_PASS; index++) writeAt(index);
    const durations: number[] = [];
    for (let index = 0; index < Math.max(writes, MIN_WRITES); index++) {
      const startedAt = monotonicMs();
      writeAt(index);
      durations.push(monotonicMs() - startedAt);
    }
    return percentile(durations, 0.99);
  } finally {
    closeSync(handle);
    rmSync(file);
  }
}
