/** Measures the disk space that the store's files use, and the free space on their disk. */
import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { DiskSpace } from '../../contract/store-figures.js';

/** Suffixes of the store's files: the file itself, the WAL, the WAL's index in shared memory. */
const SUFFIXES = ['', '-wal', '-shm'] as const;

/** Returns the current figures of the store in `file`. Rejects if its folder can't be read. */
export async function readDiskSpace(file: string): Promise<DiskSpace> {
  const sizes = SUFFIXES.map((suffix) =>
    stat(`${file}${suffix}`).then(
      ({ size }) => size,
      // There is no such file: the store is closed.
      () => 0,
    ),
  );
  const [{ bavail, bsize }, ...fileBytes] = await Promise.all([statfs(path.dirname(file)), ...sizes]);
  return { storeBytes: fileBytes.reduce((sum, bytes) => sum + bytes, 0), freeBytes: bavail * bsize };
}
