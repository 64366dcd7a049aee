/** A store's file once nobody has it open: only then do its checksums (file-sums.ts) describe it. */
import { statSync } from 'node:fs';
import { sumFile, writeSums } from '../file-sums.js';

/** The largest store that is summed when it closes, in bytes: 1 GiB takes about a second. */
const SUMMED_BYTES = 1024 ** 3;

/** Whether all of a store is in its file: a WAL with content still changes it. */
export function isAtRest(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/**
 * Writes the checksums of a store that was just closed. A very large one goes without, since nobody waits for it to
 * stop; so does one whose WAL is still there because another process has the file open.
 */
export function sumClosedFile(file: string): void {
  if (isAtRest(file) && statSync(file).size <= SUMMED_BYTES) writeSums(file, sumFile(file));
}
