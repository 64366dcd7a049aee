/** A disk without a byte left. */
import { closeSync, openSync, writeSync } from 'node:fs';

/** Takes the last byte of the file system that the file is on. To be given a small one, made for it. */
export function fillDisk(file: string): void {
  const descriptor = openSync(file, 'w');
  const piece = Buffer.alloc(4096);
  try {
    for (;;) writeSync(descriptor, piece);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(descriptor);
  }
}
