/**
 * Bytes that are appended once and read at any position. They stay in memory while they are few, and go to a temporary
 * file beyond that, so that very many findings take bounded memory. The file has no name: the system removes it when
 * the process ends.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LockgateError } from '../../../../../proto/errors.js';

/** Bytes that are kept in memory. */
const MEMORY_BYTES = 4 * 1024 * 1024;
/** Bytes that are read from the file at once: a few findings, which are mostly read in the order of writing. */
const READ_BYTES = 8 * 1024;

export class SpillFile {
  #descriptor: number | null = null;
  #buffer = Buffer.allocUnsafe(READ_BYTES);
  #buffered = 0;
  #writtenBytes = 0;
  readonly #cache = Buffer.allocUnsafe(READ_BYTES);
  #cacheAt = 0;
  #cachedBytes = 0;

  /** Appends the bytes, and returns their position. @throws LockgateError `input-file` if the disk takes no more */
  append(bytes: Buffer): number {
    const position = this.#writtenBytes + this.#buffered;
    if (this.#buffered + bytes.length > MEMORY_BYTES) this.#flush();
    if (bytes.length > MEMORY_BYTES) this.#write(bytes);
    else {
      if (this.#buffered + bytes.length > this.#buffer.length) this.#grow(this.#buffered + bytes.length);
      bytes.copy(this.#buffer, this.#buffered);
      this.#buffered += bytes.length;
    }
    return position;
  }

  /** The bytes at a position where they were appended. */
  read(position: number, length: number): Buffer {
    if (position >= this.#writtenBytes) {
      const start = position - this.#writtenBytes;
      return this.#buffer.subarray(start, start + length);
    }
    if (length > READ_BYTES) return this.#readFile(Buffer.allocUnsafe(length), position, length);
    if (position < this.#cacheAt || position + length > this.#cacheAt + this.#cachedBytes) {
      this.#cacheAt = position;
      this.#cachedBytes = this.#readFile(this.#cache, position, READ_BYTES).length;
    }
    return this.#cache.subarray(position - this.#cacheAt, position - this.#cacheAt + length);
  }

  /** Frees the file. Nothing can be read any more. */
  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  #grow(bytes: number): void {
    const larger = Buffer.allocUnsafe(Math.min(MEMORY_BYTES, Math.max(bytes, 2 * this.#buffer.length)));
    this.#buffer.copy(larger, 0, 0, this.#buffered);
    this.#buffer = larger;
  }

  #flush(): void {
    this.#write(this.#buffer.subarray(0, this.#buffered));
    this.#buffered = 0;
  }

  #write(bytes: Buffer): void {
    try {
      this.#descriptor ??= openNameless();
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#descriptor, bytes, done);
    } catch (error) {
      const { message } = error as Error;
      throw new LockgateError('input-file', `the findings need a temporary file in ${tmpdir()}: ${message}`);
    }
    this.#writtenBytes += bytes.length;
  }

  #readFile(into: Buffer, position: number, length: number): Buffer {
    let done = 0;
    while (done < length) {
      const count = readSync(this.#descriptor as number, into, done, length - done, position + done);
      if (count === 0) break;
      done += count;
    }
    return into.subarray(0, done);
  }
}

function openNameless(): number {
  const file = join(tmpdir(), `lockgate-findings-${randomBytes(8).toString('hex')}`);
  const descriptor = openSync(file, 'wx+', 0o600);
  unlinkSync(file);
  return descriptor;
}
