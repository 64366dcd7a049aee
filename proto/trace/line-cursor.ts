/**
 * A cursor over the bytes of one trace line that reads values in our own spelling, for own-line.ts and the generated
 * part about pings (gen/ping-line.ts). It never says what is wrong: at the first other spelling `isOwn` becomes false,
 * and what is read from there on is worthless.
 */
import { parseOwnDate } from '../date.js';
import { REASONS, type Reason } from '../wire/reasons.js';

/** Letters that are compared four at a time. Where they are no multiple of four, the last four overlap those before. */
export interface Letters {
  readonly length: number;
  readonly fours: Int32Array;
  readonly places: Int32Array;
}

/** A word with its closing quote, and the value it stands for. */
export interface Word<T> {
  readonly letters: Letters;
  readonly value: T;
}

const FOUR = 4;

/** The letters of a text of four letters or more, all of them ASCII. */
export function lettersOf(text: string): Letters {
  const view = new DataView(new TextEncoder().encode(text).buffer);
  const places: number[] = [];
  for (let place = 0; place + FOUR <= view.byteLength; place += FOUR) places.push(place);
  if (view.byteLength % FOUR !== 0) places.push(view.byteLength - FOUR);
  const fours = places.map((place) => view.getInt32(place, true));
  return { length: view.byteLength, places: Int32Array.from(places), fours: Int32Array.from(fours) };
}

/** Words of three letters or more. Where one begins with another, the longer comes first. */
export function wordsOf<T extends string>(...values: T[]): readonly Word<T>[] {
  return values.map((value) => ({ letters: lettersOf(`${value}"`), value }));
}

const NULL = lettersOf('null');
const TRUE = lettersOf('true');
const FALSE = lettersOf('false');

/** Reasons by their first letter after `REASON_`. */
const REASON_LETTER = 'REASON_'.length;
const REASONS_BY_LETTER: readonly (readonly Word<Reason>[])[] = Array.from({ length: 128 }, (_, code) =>
  wordsOf<Reason>(...REASONS.map((row) => row.name).filter((name) => name.charCodeAt(REASON_LETTER) === code)),
);

/** Digits that a mantissa may have and still be exact. */
const EXACT_DIGITS = 15;
const POWERS_OF_TEN = Array.from({ length: EXACT_DIGITS + 1 }, (_, exponent) => 10 ** exponent);
const UINT32_MOST = 2 ** 32 - 1;
const TEXT_LETTERS_MOST = 32;

const QUOTE = 34;
const DASH = 45;
const DOT = 46;
const ZERO = 48;
const BACKSLASH = 92;
const COLON = 58;
const BRACE = 125;
const DATE_LETTERS = 24;

/** See the head of this file. */
export class LineCursor {
  /** Whether all that was read so far is in our own spelling. */
  isOwn = true;
  /** Where the next letter is. */
  at = 0;

  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #end = 0;
  #lastText: Word<string> | null = null;

  /** Starts with a line that goes from `start` to before `end`. */
  start(bytes: Uint8Array, start: number, end: number): void {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.at = start;
    this.#end = end;
    this.isOwn = true;
  }

  /** Goes past the letters, or finds another spelling. */
  pass(expected: Letters): void {
    if (!this.skip(expected)) this.isOwn = false;
  }

  /** Goes past the letters where they come next; returns whether they do. */
  skip(expected: Letters): boolean {
    const at = this.at;
    if (at + expected.length > this.#end) return false;
    const view = this.#view;
    const { fours, places } = expected;
    for (let index = 0; index < fours.length; index++) {
      if (view.getInt32(at + (places[index] as number), true) !== fours[index]) return false;
    }
    this.at = at + expected.length;
    return true;
  }

  /** One of the words, with its closing quote. */
  word<T>(words: readonly Word<T>[]): T | undefined {
    for (const word of words) {
      if (this.skip(word.letters)) return word.value;
    }
    this.isOwn = false;
    return undefined;
  }

  /** A reason of the table, with its closing quote. */
  reason(): Reason {
    const words = REASONS_BY_LETTER[this.#bytes[this.at + REASON_LETTER] as number];
    return (words === undefined ? undefined : this.word(words)) ?? this.#notOwn('REASON_NETWORK_PING');
  }

  /** Finds another spelling where the value is not the only one that may stand here. */
  only<T>(expected: T, value: T): void {
    if (value !== expected) this.isOwn = false;
  }

  /** Goes past `null` where it comes next. */
  isNull(): boolean {
    return this.skip(NULL);
  }

  /** `true` or `false`. */
  flag(): boolean {
    if (this.skip(FALSE)) return false;
    this.pass(TRUE);
    return true;
  }

  /** The closing brace of an object. */
  close(): void {
    if (this.#bytes[this.at] !== BRACE) this.isOwn = false;
    this.at += 1;
  }

  /** A date, as ms since the epoch. */
  date(): number {
    const timeMs = parseOwnDate(this.#bytes, this.at);
    if (Number.isNaN(timeMs)) this.isOwn = false;
    this.at += DATE_LETTERS;
    return timeMs;
  }

  /**
   * A date that is likely the one at `start`, which is `knownMs`: most pings are received in the very millisecond of
   * their date, as simulated ones are.
   */
  dateLike(start: number, knownMs: number): number {
    const at = this.at;
    if (at + DATE_LETTERS > this.#end) return this.#notOwn(0);
    const view = this.#view;
    for (let place = 0; place < DATE_LETTERS; place += FOUR) {
      if (view.getInt32(at + place, true) !== view.getInt32(start + place, true)) return this.date();
    }
    this.at = at + DATE_LETTERS;
    return knownMs;
  }

  /** The 48 bits of a MAC such as `A4:C1:38:F0:E1:D2`, in upper case as we print it. */
  mac(): number {
    const bytes = this.#bytes;
    let number = 0;
    for (let pair = 0; pair < 6; pair++) {
      const at = this.at + 3 * pair;
      const value = hexDigit(bytes[at] as number) * 16 + hexDigit(bytes[at + 1] as number);
      if (!(value >= 0) || (pair < 5 && bytes[at + 2] !== COLON)) this.isOwn = false;
      number = number * 256 + value;
    }
    this.at += 17;
    return number;
  }

  /** A whole number from 0 to 2³²−1. */
  count(): number {
    const bytes = this.#bytes;
    const start = this.at;
    let at = start;
    let value = 0;
    for (let digit = (bytes[at] as number) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[++at] as number) - ZERO)
      value = value * 10 + digit;
    const isLeadingZero = bytes[start] === ZERO && at > start + 1;
    if (at === start || at - start > EXACT_DIGITS || isLeadingZero || value > UINT32_MOST) this.isOwn = false;
    this.at = at;
    return value;
  }

  /** A number with so few digits that dividing by a power of ten rounds as reading it does: both are exact. */
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
      if (decimals === 0) this.isOwn = false;
    }
    const isLeadingZero = bytes[start] === ZERO && whole > 1;
    // An exponent, if there is one, is not what must come next.
    if (whole === 0 || whole + decimals > EXACT_DIGITS || isLeadingZero) return this.#notOwn(0);
    this.at = at;
    const value = mantissa / (POWERS_OF_TEN[decimals] as number);
    return isNegative ? -value : value;
  }

  /** A text of plain letters, past its closing quote. Most pings have the same one, so the last is remembered. */
  text(): string {
    const bytes = this.#bytes;
    const start = this.at;
    if (this.#lastText !== null && this.skip(this.#lastText.letters)) return this.#lastText.value;
    let end = start;
    for (; bytes[end] !== QUOTE; end++) {
      const code = bytes[end] as number;
      if (!(code >= 32 && code < 127) || code === BACKSLASH || end - start >= TEXT_LETTERS_MOST)
        return this.#notOwn('');
    }
    const value = String.fromCharCode(...bytes.subarray(start, end));
    this.at = end + 1;
    // With its quote it must have four letters to be compared by fours.
    if (value.length >= FOUR - 1) this.#lastText = wordsOf(value)[0] as Word<string>;
    return value;
  }

  #notOwn<T>(standIn: T): T {
    this.isOwn = false;
    return standIn;
  }
}

/** NaN for what is no upper-case hex digit. */
function hexDigit(code: number): number {
  if (code >= ZERO && code <= 57) return code - ZERO;
  return code >= 65 && code <= 70 ? code - 55 : Number.NaN;
}
