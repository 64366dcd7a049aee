/** How much room the store's files take, and how much is left on their disk. */
import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import type { DiskSpace } from '../../contract/store-figures.js';

/** What SQLite appends to the store's name: the file itself, the WAL, its index in shared memory. */
const ENDINGS = ['', '-wal', '-shm'] as const;

/** As of now, of the store in `file`. Rejects where its folder can't be read. */
export async function readDiskSpace(file: string): Promise<DiskSpace> {
  const sizes = ENDINGS.map((ending) =>
    stat(`${file}${ending}`).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  const [{ bavail, bsize }, ...bytes] = await Promise.all([statfs(path.dirname(file)), ...sizes]);
  return { storeBytes: bytes.reduce((sum, each) => sum + each, 0), freeBytes: bavail * bsize };
}
