/** How much room the store takes, and how much is left beside it. */
import { stat, statfs } from 'node:fs/promises';
import path from 'node:path';

/** The store's file and what SQLite keeps beside it while it runs. */
const STORE_FILES = ['lockgate.sqlite', 'lockgate.sqlite-wal', 'lockgate.sqlite-shm'] as const;

export interface DiskSpace {
  /** What the store's files take, bytes. */
  readonly storeBytes: number;
  /** What is free on their disk for this user, bytes. */
  readonly freeBytes: number;
}

/** As of now, of the store in this folder. Rejects where the folder can't be read. */
export async function readDiskSpace(folder: string): Promise<DiskSpace> {
  const sizes = STORE_FILES.map((name) =>
    stat(path.join(folder, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  const [{ bavail, bsize }, ...bytes] = await Promise.all([statfs(folder), ...sizes]);
  return { storeBytes: bytes.reduce((sum, each) => sum + each, 0), freeBytes: bavail * bsize };
}
