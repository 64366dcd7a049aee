/** Writes lines to a file or to standard output. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { LockgateError } from '../../proto/errors.js';

/** Collects lines and writes them in chunks. Each gzipped chunk is a member of its own, as gzip allows. */
export class LineSink {
  readonly #file: string | undefined;
  readonly #descriptor: number | undefined;
  #lines: string[] = [];
  #size = 0;

  readonly #piece: number;

  /**
   * @param piece how many characters are written at once; 1 to write each line immediately
   * @throws LockgateError `input-file` if the file can't be created
   */
  constructor(file: string | undefined, piece = PIECE_CHARACTERS) {
    this.#file = file;
    this.#piece = piece;
    if (file === undefined) return;
    try {
      this.#descriptor = openSync(file, 'w');
    } catch (error) {
      throw new LockgateError('input-file', `${file} can't be written: ${(error as Error).message}`);
    }
  }

  write(line: string): void {
    this.#lines.push(line);
    this.#size += line.length;
    if (this.#size >= this.#piece) this.#flush();
  }

  end(): void {
    this.#flush();
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
  }

  #flush(): void {
    if (this.#lines.length === 0) return;
    const text = `${this.#lines.join('\n')}\n`;
    this.#lines = [];
    this.#size = 0;
    if (this.#descriptor === undefined) process.stdout.write(text);
    else this.#writeWhole(this.#descriptor, this.#file?.endsWith('.gz') ? gzipSync(text) : Buffer.from(text));
  }

  /** Repeats partial writes. */
  #writeWhole(descriptor: number, bytes: Uint8Array): void {
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done);
    } catch (error) {
      throw new LockgateError('input-file', `${this.#file} can't be written: ${(error as Error).message}`);
    }
  }
}

const PIECE_CHARACTERS = 1024 * 1024;
