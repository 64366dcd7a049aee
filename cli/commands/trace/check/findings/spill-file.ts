/**
 * Storage for bytes that are appended and later read at any position. The first bytes stay in memory; when they exceed
 * a limit they go to a temporary file, so that very many findings take bounded memory. The file is unlinked as soon as
 * it is open, so that the system removes it when the process ends.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LockgateError } from '../../../../../proto/errors.js';

/** The maximum number of appended bytes in memory. */
const MAX_MEMORY_BYTES = 4 * 1024 * 1024;
/** Bytes that are read from the file at once: a few findings, since most are read in the order of writing. */
const READ_BYTES = 8 * 1024;

/** Appended bytes, in memory or in a temporary file. */
export class SpillFile {
  #descriptor: number | null = null;
  /** The appended bytes that are not in the file yet. */
  #buffer = Buffer.allocUnsafe(READ_BYTES);
  #bufferedBytes = 0;
  #writtenBytes = 0;
  /** The part of the file that was read last, and where it starts. */
  readonly #cache = Buffer.allocUnsafe(READ_BYTES);
  #cacheStart = 0;
  #cachedBytes = 0;

  /** Appends the bytes, and returns their position. @throws LockgateError `input-file` if the disk takes no more */
  append(bytes: Buffer): number {
    const position = this.#writtenBytes + this.#bufferedBytes;
    if (this.#bufferedBytes + bytes.length > MAX_MEMORY_BYTES) this.#flush();
    if (bytes.length > MAX_MEMORY_BYTES) this.#write(bytes);
    else {
      if (this.#bufferedBytes + bytes.length > this.#buffer.length) this.#grow(this.#bufferedBytes + bytes.length);
      bytes.copy(this.#buffer, this.#bufferedBytes);
      this.#bufferedBytes += bytes.length;
    }
    return position;
  }

  /** The bytes at a position where they were appended; valid until the next call. */
  read(position: number, length: number): Buffer {
    if (position >= this.#writtenBytes) {
      const start = position - this.#writtenBytes;
      return this.#buffer.subarray(start, start + length);
    }
    if (length > READ_BYTES) return this.#readFile(Buffer.allocUnsafe(length), position, length);
    if (position < this.#cacheStart || position + length > this.#cacheStart + this.#cachedBytes) {
      this.#cacheStart = position;
      this.#cachedBytes = this.#readFile(this.#cache, position, READ_BYTES).length;
    }
    return this.#cache.subarray(position - this.#cacheStart, position - this.#cacheStart + length);
  }

  /** Frees the file. Nothing can be read any more. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  #grow(bytes: number): void {
    const larger = Buffer.allocUnsafe(Math.min(MAX_MEMORY_BYTES, Math.max(bytes, 2 * this.#buffer.length)));
    this.#buffer.copy(larger, 0, 0, this.#bufferedBytes);
    this.#buffer = larger;
  }

  #flush(): void {
    this.#write(this.#buffer.subarray(0, this.#bufferedBytes));
    this.#bufferedBytes = 0;
  }

  #write(bytes: Buffer): void {
    try {
      this.#descriptor ??= openUnlinked();
      for (let offset = 0; offset < bytes.length; ) offset += writeSync(this.#descriptor, bytes, offset);
    } catch (error) {
      const { message } = error as Error;
      throw new LockgateError('input-file', `the findings need a temporary file in ${tmpdir()}: ${message}`);
    }
    this.#writtenBytes += bytes.length;
  }

  #readFile(into: Buffer, position: number, length: number): Buffer {
    let readBytes = 0;
    while (readBytes < length) {
      const count = readSync(this.#descriptor as number, into, readBytes, length - readBytes, position + readBytes);
      if (count === 0) break;
      readBytes += count;
    }
    return into.subarray(0, readBytes);
  }
}

/** The descriptor of a new file that has no name any more, so that nothing is left of it however the process ends. */
function openUnlinked(): number {
  const file = join(tmpdir(), `lockgate-findings-${randomBytes(8).toString('hex')}`);
  const descriptor = openSync(file, 'wx+', 0o600);
  unlinkSync(file);
  return descriptor;
}
