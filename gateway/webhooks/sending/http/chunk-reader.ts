/** Reads a body in the chunked transfer coding (RFC 9112 §7.1), in pieces as they arrive. Does no I/O. */
import { MalformedAnswer } from './answer-head.js';

/** A size in hexadecimal, and extensions, which mean nothing to us. */
const SIZE_LINE = /^0*([0-9a-fA-F]{1,8})(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n$/;
const TRAILER_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n$/;
const LINE_FEED = 0x0a;

/** What comes next: a size, the bytes of a chunk, the line end after them, the fields after the last chunk, nothing. */
type Part = 'size' | 'data' | 'data-end' | 'trailers' | 'ended';

export class ChunkReader {
  #part: Part = 'size';
  /** Bytes of the chunk that have not arrived yet. */
  #missing = 0;
  /** The start of a line whose end has not arrived yet. AnswerReader limits its length. */
  #line = '';

  get isEnded(): boolean {
    return this.#part === 'ended';
  }

  /**
   * Reads `bytes` from `from` on, up to the end of the body at most. Calls `onData` with each range of the content.
   *
   * @returns the index after the last byte that belongs to the body
   * @throws MalformedAnswer
   */
  read(bytes: Buffer, from: number, onData: (start: number, end: number) => void): number {
    let at = from;
    while (at < bytes.length && this.#part !== 'ended') {
      if (this.#part === 'data') {
        const end = Math.min(bytes.length, at + this.#missing);
        onData(at, end);
        this.#missing -= end - at;
        at = end;
        if (this.#missing === 0) this.#part = 'data-end';
      } else {
        const lineFeed = bytes.indexOf(LINE_FEED, at);
        const end = lineFeed === -1 ? bytes.length : lineFeed + 1;
        this.#line += bytes.toString('latin1', at, end);
        at = end;
        if (lineFeed !== -1) this.#takeLine();
      }
    }
    return at;
  }

  #takeLine(): void {
    const line = this.#line;
    this.#line = '';
    if (this.#part === 'size') {
      const size = SIZE_LINE.exec(line)?.[1];
      if (size === undefined) throw new MalformedAnswer('the size of a chunk');
      this.#missing = Number.parseInt(size, 16);
      this.#part = this.#missing === 0 ? 'trailers' : 'data';
    } else if (this.#part === 'data-end') {
      if (line !== '\r\n') throw new MalformedAnswer('the end of a chunk');
      this.#part = 'size';
    } else if (line === '\r\n') this.#part = 'ended';
    else if (!TRAILER_LINE.test(line)) throw new MalformedAnswer('a field after the last chunk');
  }
}
