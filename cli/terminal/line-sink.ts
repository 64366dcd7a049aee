/** Lines on their way into a file, or to the standard output. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { LockgateError } from '../../proto/errors.js';

/** Collects lines and writes them in pieces; a piece that is gzipped is a member of its own, which gzip allows. */
export class LineSink {
  readonly #file: string | undefined;
  readonly #descriptor: number | undefined;
  #lines: string[] = [];
  #size = 0;

  readonly #piece: number;

  /**
   * @param piece how many characters are written at once; 1 for lines that somebody waits for
   * @throws LockgateError `input-file` where the file can't be made
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

  /** The system may take a part of what it is given, or nothing: a disk is full one day. */
  #writeWhole(descriptor: number, bytes: Uint8Array): void {
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done);
    } catch (error) {
      throw new LockgateError('input-file', `${this.#file} can't be written: ${(error as Error).message}`);
    }
  }
}

const PIECE_CHARACTERS = 1024 * 1024;
