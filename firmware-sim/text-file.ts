/** Reads a text file that a user names. The size is limited, since a device or a pipe may never end. */
import { type FileHandle, open } from 'node:fs/promises';
import { LockgateError } from '../proto/errors.js';

const CHUNK_BYTES = 64 * 1024;

/** Reads the text. @throws LockgateError `input-file` for an unreadable file, or one with more than `maxBytes` bytes */
export async function readTextFile(file: string, maxBytes: number): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file);
    return (await readAtMost(handle, maxBytes, file)).toString('utf8');
  } catch (error) {
    if (error instanceof LockgateError) throw error;
    throw new LockgateError('input-file', `${file} can't be read: ${(error as Error).message}`);
  } finally {
    await handle?.close();
  }
}

async function readAtMost(handle: FileHandle, maxBytes: number, file: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (let size = 0; ; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES));
    if (bytesRead === 0) return Buffer.concat(chunks);
    size += bytesRead;
    if (size > maxBytes)
      throw new LockgateError('input-file', `${file} is too large: expected at most ${maxBytes} bytes`);
    chunks.push(buffer.subarray(0, bytesRead));
  }
}
