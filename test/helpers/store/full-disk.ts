/** Fills a disk to its last byte. */
import { closeSync, openSync, writeSync } from 'node:fs';

/** Fills the file system that `file` is on. Use only on a small file system that was made for the test. */
export function fillDisk(file: string): void {
  const descriptor = openSync(file, 'w');
  const page = Buffer.alloc(4096);
  // ENOSPC, no space left, ends the loop.
  try {
    for (;;) writeSync(descriptor, page);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(descriptor);
  }
}
