/** Writes the checksums (file-sums.ts) of a store's file after the store was closed. */
import { statSync } from 'node:fs';
import { sumFile, writeSums } from '../file-sums.js';

/** Maximum size of a store that gets checksums when it closes: 1 GiB takes about a second. */
const MAX_SUMMED_BYTES = 1024 ** 3;

/** Whether a store's file is complete, that is, its write-ahead log (WAL) is missing or empty. */
export function isAtRest(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/**
 * Writes the checksums of a store that was just closed. Writes none for a very large store, which would delay the exit,
 * and none if the WAL is still there since another process has the file open.
 */
export function sumClosedFile(file: string): void {
  if (isAtRest(file) && statSync(file).size <= MAX_SUMMED_BYTES) writeSums(file, sumFile(file));
}
