/** Writes lines to a file, gzipped if its name ends in `.gz`, or to the standard output. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { LockgateError } from '../../proto/errors.js';

/**
 * Collects lines and writes them in chunks. Each gzipped chunk is a separate gzip member; a gzip file may have many.
 */
export class LineSink {
  readonly #file: string | undefined;
  readonly #descriptor: number | undefined;
  #lines: string[] = [];
  #pendingCharacters = 0;

  readonly #chunkCharacters: number;

  /**
   * @param file undefined for the standard output
   * @param chunkCharacters how many characters are written at once; 1 to write each line immediately
   * @throws LockgateError `input-file` if the file can't be created
   */
  constructor(file: string | undefined, chunkCharacters = DEFAULT_CHUNK_CHARACTERS) {
    this.#file = file;
    this.#chunkCharacters = chunkCharacters;
    if (file === undefined) return;
    try {
      this.#descriptor = openSync(file, 'w');
    } catch (error) {
      throw new LockgateError('input-file', `${file} can't be written: ${(error as Error).message}`);
    }
  }

  /** Adds a line, without its line break. */
  write(line: string): void {
    this.#lines.push(line);
    this.#pendingCharacters += line.length;
    if (this.#pendingCharacters >= this.#chunkCharacters) this.#flush();
  }

  /** Adds whole lines with their line breaks. The bytes may be reused afterwards. */
  writeBytes(lines: Uint8Array): void {
    // Few lines are collected like single ones; `write` adds the last line break. Many are written as they are.
    const isFewBytes = lines.length < this.#chunkCharacters;
    if (isFewBytes && lines.length > 0)
      this.write(Buffer.from(lines.buffer, lines.byteOffset, lines.length - 1).toString());
    if (isFewBytes) return;
    this.#flush();
    this.#writeChunk(lines);
  }

  /** Writes the remaining lines and closes the file. */
  end(): void {
    this.#flush();
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }

  #flush(): void {
    if (this.#lines.length === 0) return;
    const text = `${this.#lines.join('\n')}\n`;
    this.#lines = [];
    this.#pendingCharacters = 0;
    this.#writeChunk(Buffer.from(text));
  }

  #writeChunk(bytes: Uint8Array): void {
    // A stream writes later, so that it needs bytes of its own.
    if (this.#descriptor === undefined) process.stdout.write(Buffer.from(bytes));
    else this.#writeAll(this.#descriptor, this.#file?.endsWith('.gz') ? gzipSync(bytes) : bytes);
  }

  /** Writes until all bytes are written: a call of `writeSync` may write only some. */
  #writeAll(descriptor: number, bytes: Uint8Array): void {
    try {
      for (let offset = 0; offset < bytes.length; ) offset += writeSync(descriptor, bytes, offset);
    } catch (error) {
      throw new LockgateError('input-file', `${this.#file} can't be written: ${(error as Error).message}`);
    }
  }
}

const DEFAULT_CHUNK_CHARACTERS = 1024 * 1024;
