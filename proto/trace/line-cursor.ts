/**
 * A cursor over the bytes of one trace line that reads values in the canonical spelling: exactly as writer.ts writes
 * them. It is for canonical-line.ts and the generated code for pings (gen/ping-line.ts). It reports no errors: at the
 * first other spelling `isCanonical` becomes false, and the values read from then on are meaningless. After
 * the end of the buffer a byte is undefined, and a calculation with it gives NaN, which no check below accepts.
 */
import { parseCanonicalDate } from '../date.js';
import { REASONS, type Reason } from '../wire/reasons.js';

/**
 * ASCII text that is compared with the line four bytes at a time: `int32s[i]` with the four bytes at `offsets[i]`. If
 * the length is no multiple of four, the last four bytes overlap the ones before.
 */
export interface BytePattern {
  readonly length: number;
  readonly int32s: Int32Array;
  readonly offsets: Int32Array;
}

/** A JSON string with its closing quote, and the value that it represents. */
export interface Token<T> {
  readonly pattern: BytePattern;
  readonly value: T;
}

const INT32_BYTES = 4;

/** The pattern of a text of at least four characters, all of them ASCII. */
export function bytePattern(text: string): BytePattern {
  const view = new DataView(new TextEncoder().encode(text).buffer);
  const offsets: number[] = [];
  for (let offset = 0; offset + INT32_BYTES <= view.byteLength; offset += INT32_BYTES) offsets.push(offset);
  if (view.byteLength % INT32_BYTES !== 0) offsets.push(view.byteLength - INT32_BYTES);
  // Little-endian, as `skip` reads the line.
  const int32s = offsets.map((offset) => view.getInt32(offset, true));
  return { length: view.byteLength, offsets: Int32Array.from(offsets), int32s: Int32Array.from(int32s) };
}

/** Tokens for texts of at least three characters. If one text starts with another, the longer must come first. */
export function tokensOf<T extends string>(...values: T[]): readonly Token<T>[] {
  return values.map((value) => ({ pattern: bytePattern(`${value}"`), value }));
}

const NULL = bytePattern('null');
const TRUE = bytePattern('true');
const FALSE = bytePattern('false');

/**
 * The reasons by the code of their first character after `REASON_`, so that only a few must be compared. PHONE is not
 * among them, so it is left to the slow path: only phones send it.
 */
const REASON_KEY_OFFSET = 'REASON_'.length;
const REASONS_BY_KEY: readonly (readonly Token<Reason>[])[] = Array.from({ length: 128 }, (_, code) =>
  tokensOf<Reason>(...REASONS.map((row) => row.name).filter((name) => name.charCodeAt(REASON_KEY_OFFSET) === code)),
);

/** The maximum number of digits with which every integer is exact as a double. */
const MAX_EXACT_DIGITS = 15;
const POWERS_OF_TEN = Array.from({ length: MAX_EXACT_DIGITS + 1 }, (_, exponent) => 10 ** exponent);
const MAX_UINT32 = 2 ** 32 - 1;
/** A longer text, such as a firmware version, is left to the slow path. */
const MAX_TEXT_LENGTH = 32;

// The codes of some characters.
const QUOTE = 34;
const DASH = 45;
const DOT = 46;
const ZERO = 48;
const NINE = 57;
const LETTER_A = 65;
const LETTER_F = 70;
const BACKSLASH = 92;
const COLON = 58;
const CLOSING_BRACE = 125;
/** The length of `2026-11-20T06:00:00.000Z`. */
const DATE_LENGTH = 24;
/** The length of `A4:C1:38:F0:E1:D2`, and its number of pairs of digits. */
const MAC_LENGTH = 17;
const MAC_PAIRS = 6;

/** See the top of this file. */
export class LineCursor {
  /** Whether everything read so far is in the canonical spelling. */
  isCanonical = true;
  /** The position of the next byte. */
  at = 0;

  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #end = 0;
  /** The text that was read last, cached for {@link text}. */
  #lastText: Token<string> | null = null;

  /** Starts a new line, from `start` up to but not including `end`. */
  start(bytes: Uint8Array, start: number, end: number): void {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.at = start;
    this.#end = end;
    this.isCanonical = true;
  }

  /** Moves past the pattern, which must come next. */
  pass(expected: BytePattern): void {
    if (!this.skip(expected)) this.isCanonical = false;
  }

  /** Moves past the pattern if it comes next. Returns whether it does. */
  skip(expected: BytePattern): boolean {
    const at = this.at;
    if (at + expected.length > this.#end) return false;
    const view = this.#view;
    const { int32s, offsets } = expected;
    for (let index = 0; index < int32s.length; index++) {
      if (view.getInt32(at + (offsets[index] as number), true) !== int32s[index]) return false;
    }
    this.at = at + expected.length;
    return true;
  }

  /** Reads one of the tokens. */
  word<T>(words: readonly Token<T>[]): T | undefined {
    for (const word of words) {
      if (this.skip(word.pattern)) return word.value;
    }
    this.isCanonical = false;
    return undefined;
  }

  /** Reads the name of a known reason, with its closing quote. */
  reason(): Reason {
    const words = REASONS_BY_KEY[this.#bytes[this.at + REASON_KEY_OFFSET] as number];
    return (words === undefined ? undefined : this.word(words)) ?? this.#notCanonical('REASON_NETWORK_PING');
  }

  /** Checks a value that was read: only `expected` is allowed here. */
  only<T>(expected: T, value: T): void {
    if (value !== expected) this.isCanonical = false;
  }

  /** Moves past `null` if it comes next. Returns whether it does. */
  isNull(): boolean {
    return this.skip(NULL);
  }

  /** Reads `true` or `false`. */
  flag(): boolean {
    if (this.skip(FALSE)) return false;
    this.pass(TRUE);
    return true;
  }

  /** Moves past the closing brace of an object. */
  close(): void {
    if (this.#bytes[this.at] !== CLOSING_BRACE) this.isCanonical = false;
    this.at += 1;
  }

  /** Reads a date, as ms since the epoch. */
  date(): number {
    const timeMs = parseCanonicalDate(this.#bytes, this.at);
    if (Number.isNaN(timeMs)) this.isCanonical = false;
    this.at += DATE_LENGTH;
    return timeMs;
  }

  /**
   * Reads a date that is probably the same as the one at `start`, whose value is `knownMs`: simulated pings are mostly
   * received in the same millisecond in which they are made.
   */
  dateLike(start: number, knownMs: number): number {
    const at = this.at;
    if (at + DATE_LENGTH > this.#end) return this.#notCanonical(0);
    const view = this.#view;
    for (let offset = 0; offset < DATE_LENGTH; offset += INT32_BYTES) {
      if (view.getInt32(at + offset, true) !== view.getInt32(start + offset, true)) return this.date();
    }
    this.at = at + DATE_LENGTH;
    return knownMs;
  }

  /** Reads a MAC such as `A4:C1:38:F0:E1:D2` in upper case. Returns its 48 bits as a number. */
  mac(): number {
    const bytes = this.#bytes;
    let number = 0;
    for (let pair = 0; pair < MAC_PAIRS; pair++) {
      const at = this.at + 3 * pair;
      const value = hexDigit(bytes[at] as number) * 16 + hexDigit(bytes[at + 1] as number);
      if (!(value >= 0) || (pair < MAC_PAIRS - 1 && bytes[at + 2] !== COLON)) this.isCanonical = false;
      number = number * 256 + value;
    }
    this.at += MAC_LENGTH;
    return number;
  }

  /** Reads an integer from 0 to 2³²−1. */
  count(): number {
    const bytes = this.#bytes;
    const start = this.at;
    let at = start;
    let value = 0;
    for (let digit = (bytes[at] as number) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[++at] as number) - ZERO)
      value = value * 10 + digit;
    const isLeadingZero = bytes[start] === ZERO && at > start + 1;
    if (at === start || at - start > MAX_EXACT_DIGITS || isLeadingZero || value > MAX_UINT32) this.isCanonical = false;
    this.at = at;
    return value;
  }

  /** Reads a decimal number. It may have only so many digits that the division below rounds as `JSON.parse` does. */
  number(): number {
    const bytes = this.#bytes;
    const isNegative = bytes[this.at] === DASH;
    const start = isNegative ? this.at + 1 : this.at;
    let at = start;
    let mantissa = 0;
    for (let digit = (bytes[at] as number) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[++at] as number) - ZERO)
      mantissa = mantissa * 10 + digit;
    const whole = at - start;
    let decimals = 0;
    if (bytes[at] === DOT) {
      const first = ++at;
      for (let digit = (bytes[at] as number) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[++at] as number) - ZERO)
        mantissa = mantissa * 10 + digit;
      decimals = at - first;
      if (decimals === 0) this.isCanonical = false;
    }
    const isLeadingZero = bytes[start] === ZERO && whole > 1;
    // An exponent is not canonical. It is not read here, so the next `pass` fails.
    if (whole === 0 || whole + decimals > MAX_EXACT_DIGITS || isLeadingZero) return this.#notCanonical(0);
    this.at = at;
    const value = mantissa / (POWERS_OF_TEN[decimals] as number);
    return isNegative ? -value : value;
  }

  /** Reads a text of printable ASCII, with its closing quote. Most pings have the same text, so the last is cached. */
  text(): string {
    const bytes = this.#bytes;
    const start = this.at;
    if (this.#lastText !== null && this.skip(this.#lastText.pattern)) return this.#lastText.value;
    let end = start;
    for (; bytes[end] !== QUOTE; end++) {
      const code = bytes[end] as number;
      if (!(code >= 32 && code < 127) || code === BACKSLASH || end - start >= MAX_TEXT_LENGTH)
        return this.#notCanonical('');
    }
    const value = String.fromCharCode(...bytes.subarray(start, end));
    this.at = end + 1;
    // With its closing quote it must have at least four bytes to be a pattern.
    if (value.length >= INT32_BYTES - 1) this.#lastText = tokensOf(value)[0] as Token<string>;
    return value;
  }

  /** Returns the placeholder, a value of the right type, which the caller must not use. */
  #notCanonical<T>(placeholder: T): T {
    this.isCanonical = false;
    return placeholder;
  }
}

/** The value of an upper-case hex digit; NaN for any other character. */
function hexDigit(code: number): number {
  if (code >= ZERO && code <= NINE) return code - ZERO;
  return code >= LETTER_A && code <= LETTER_F ? code - LETTER_A + 10 : Number.NaN;
}
