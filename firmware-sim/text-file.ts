/** Reads a text file that a user names, up to a limit: a device or a pipe may never end. */
import { type FileHandle, open } from 'node:fs/promises';
import { LockgateError } from '../proto/errors.js';

const PIECE_BYTES = 64 * 1024;

/** The whole text. @throws LockgateError `input-file` for a file that can't be read or has more than `most` bytes */
export async function readTextFile(file: string, most: number): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file);
    return (await readAtMost(handle, most, file)).toString('utf8');
  } catch (error) {
    if (error instanceof LockgateError) throw error;
    throw new LockgateError('input-file', `${file} can't be read: ${(error as Error).message}`);
  } finally {
    await handle?.close();
  }
}

async function readAtMost(handle: FileHandle, most: number, file: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let size = 0; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(PIECE_BYTES));
    if (bytesRead === 0) return Buffer.concat(pieces);
    size += bytesRead;
    if (size > most) throw new LockgateError('input-file', `${file} is too large: expected at most ${most} bytes`);
    pieces.push(buffer.subarray(0, bytesRead));
  }
}
