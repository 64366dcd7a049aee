/**
 * Reads one answer of a receiver from the bytes of a connection, in whatever pieces they arrive (RFC 9112). Does no
 * I/O: it knows no socket. It skips informational answers (1xx) except for 101, and reads a limited part of the body.
 */
import { type AnswerHead, MalformedAnswer, parseAnswerHead } from './answer-head.js';
import { ChunkReader } from './chunk-reader.js';

/** How much of a body is read, sizes of chunks included. A longer answer counts, but its connection is closed. */
const MAX_BODY_READ_BYTES = 64 * 1024;
/** How much of a body is kept. */
export const MAX_BODY_KEPT_BYTES = 1024;
/** Maximum length of a head, the same as in Node's HTTP client. */
const MAX_HEAD_BYTES = 16 * 1024;
/** More informational answers than a receiver has a reason to send. */
const MAX_INFORMATIONAL_ANSWERS = 100;
const PROTOCOL = 'HTTP/';
const HEAD_END = '\r\n\r\n';
const NO_BYTES = Buffer.alloc(0);
const [CARRIAGE_RETURN, LINE_FEED] = [0x0d, 0x0a];
const SWITCHING_PROTOCOLS = 101;

/** An answer, as far as it was read. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** The time of the answer, by the receiver's clock, as HTTP writes it. */
  readonly date: string | undefined;
  /** The start of the body, at most {@link MAX_BODY_KEPT_BYTES}. */
  readonly body: Buffer;
}

export class AnswerReader {
  /** The start of a head whose end has not arrived yet. */
  #headStart: Buffer = NO_BYTES;
  #informationalCount = 0;
  #head: AnswerHead | undefined;
  #chunks: ChunkReader | undefined;
  #bodyBytes = 0;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #hasBegun = false;
  /** Whether the answer was read to its end and no byte followed: only then can another answer follow. */
  #isAtItsEnd = true;

  /** Whether any byte of an answer has arrived. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Whether another request may follow on the connection, once the answer is complete. */
  get keepsConnection(): boolean {
    return this.#isAtItsEnd && this.#head?.keepsConnection === true;
  }

  /** The answer, once it is complete. */
  get answer(): Answer {
    const { status = 0, retryAfter, date } = this.#head ?? {};
    const body = this.#kept.length === 1 ? (this.#kept[0] as Buffer) : Buffer.concat(this.#kept);
    return { status, retryAfter, date, body };
  }

  /**
   * Reads bytes; copies what it keeps. Returns whether the answer is complete. Must not be called after that.
   *
   * @throws MalformedAnswer
   */
  read(bytes: Buffer): boolean {
    this.#hasBegun = true;
    if (this.#head !== undefined) return this.#readBody(bytes, 0);
    const unread = this.#headStart.length === 0 ? bytes : Buffer.concat([this.#headStart, bytes]);
    let at = afterLineEnds(unread);
    for (let end = unread.indexOf(HEAD_END, at); end !== -1; end = unread.indexOf(HEAD_END, at)) {
      if (end - at > MAX_HEAD_BYTES) break;
      const head = parseAnswerHead(unread.toString('latin1', at, end + HEAD_END.length));
      at = end + HEAD_END.length;
      if (head.status >= 200 || head.status === SWITCHING_PROTOCOLS) return this.#readBodyAfter(head, unread, at);
      this.#informationalCount += 1;
      if (this.#informationalCount > MAX_INFORMATIONAL_ANSWERS)
        throw new MalformedAnswer('no end of informational answers');
    }
    if (unread.length - at > MAX_HEAD_BYTES) throw new MalformedAnswer('a head over 16 KiB');
    this.#headStart = Buffer.from(unread.subarray(at));
    checkHeadStart(this.#headStart.toString('latin1'));
    return false;
  }

  /** Must be called when the receiver has closed its side. Returns whether that completes the answer. */
  end(): boolean {
    return this.#head?.bodyEnd === 'close';
  }

  #readBodyAfter(head: AnswerHead, bytes: Buffer, from: number): boolean {
    this.#head = head;
    this.#headStart = NO_BYTES;
    if (head.status === SWITCHING_PROTOCOLS) this.#isAtItsEnd = false;
    if (head.bodyEnd === 'chunked') this.#chunks = new ChunkReader();
    return this.#readBody(bytes, from);
  }

  #readBody(bytes: Buffer, from: number): boolean {
    const bodyEnd = this.#head?.bodyEnd;
    const before = this.#bodyBytes;
    let to = bytes.length;
    let isComplete = false;
    if (this.#chunks !== undefined) {
      to = this.#chunks.read(bytes, from, (start, end) => this.#keep(bytes, start, end));
      isComplete = this.#chunks.isEnded;
    } else {
      if (typeof bodyEnd === 'number') to = Math.min(to, from + bodyEnd - before);
      this.#keep(bytes, from, to);
      isComplete = before + to - from === bodyEnd;
    }
    this.#bodyBytes = before + to - from;
    if (to < bytes.length) this.#isAtItsEnd = false;
    if (isComplete || this.#bodyBytes < this.#readLimit) return isComplete;
    this.#isAtItsEnd = false;
    return true;
  }

  /** A body that announces more than the limit is never read completely, so only what is kept is read. */
  get #readLimit(): number {
    const bodyEnd = this.#head?.bodyEnd;
    return typeof bodyEnd === 'number' && bodyEnd > MAX_BODY_READ_BYTES ? MAX_BODY_KEPT_BYTES : MAX_BODY_READ_BYTES;
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    const length = Math.min(end - start, MAX_BODY_KEPT_BYTES - this.#keptBytes);
    if (length <= 0) return;
    this.#kept.push(Buffer.from(bytes.subarray(start, start + length)));
    this.#keptBytes += length;
  }
}

/**
 * Checks the start of a head whose end has not arrived: whatever speaks another protocol, or ends lines otherwise,
 * fails at once and not at the attempt's time limit.
 *
 * @throws MalformedAnswer
 */
function checkHeadStart(text: string): void {
  const hasStrayLineFeed = /(?:^|[^\r])\n/.test(text);
  if (hasStrayLineFeed || !PROTOCOL.startsWith(text.slice(0, PROTOCOL.length)))
    throw new MalformedAnswer('the status line');
}

/** The index of the first byte after line ends, which some receivers send before an answer. */
function afterLineEnds(bytes: Buffer): number {
  let at = 0;
  while (bytes[at] === CARRIAGE_RETURN || bytes[at] === LINE_FEED) at += 1;
  return at;
}
