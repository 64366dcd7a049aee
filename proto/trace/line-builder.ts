/**
 * Builds lines of JSON as bytes, one after another in one buffer that grows. It is for line-writer.ts and the generated
 * code for pings (gen/ping-line-writer.ts): writing a value of the usual kinds makes no string and no object. Each
 * value is written as JSON.stringify writes it, without quotes if it is a date or a MAC. `| 0` cuts off the decimals of
 * a division, and tells V8 that the result is an integer.
 */
import { Days } from '../clock.js';
import type { Mac } from '../wire/mac.js';
import { formatDate } from '../wire/ping-json.js';

const WORD_BYTES = 8;

/**
 * ASCII text that is copied into lines, eight bytes at a time: as numbers whose bytes are those of the text, little end
 * first, with zeros after the last character. Copying a number keeps its bytes, since no ASCII text has those of a NaN.
 */
export interface LinePart {
  /** The number of characters. */
  readonly length: number;
  readonly words: Float64Array;
}

/** The part for a text, which must be ASCII without U+007F. */
export function linePart(text: string): LinePart {
  const bytes = new Uint8Array(Math.ceil(text.length / WORD_BYTES) * WORD_BYTES);
  new TextEncoder().encodeInto(text, bytes);
  return { length: text.length, words: wordsOf(bytes) };
}

function wordsOf(bytes: Uint8Array): Float64Array {
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / WORD_BYTES }, (_, word) =>
    view.getFloat64(word * WORD_BYTES, true),
  );
}

const NULL = linePart('null');

/** The bytes of the first buffer. */
const FIRST_CAPACITY = 64 * 1024;
/** Space for the largest value except a text. */
const VALUE_BYTES = 64;
/** A character of a text has at most this many bytes: it may be written as `\u0000`. */
const BYTES_PER_CHARACTER = 6;
/** How many texts are kept as parts, and up to which length: those of pings are few, and short. */
const MAX_TEXTS = 256;
const MAX_TEXT_LENGTH = 64;
/** The length of `2026-11-20`, and of `2026-11-20T06:00:00.000Z`, which is a multiple of {@link WORD_BYTES}. */
const DAY_LENGTH = 10;
const DATE_LENGTH = 24;
const ONE_DAY = Days(1);

/** Numbers with up to seven decimals are written by digits: those of a position, and of all other measurements. */
const DECIMALS = 7;
const DECIMALS_FACTOR = 10 ** DECIMALS;
/** Below this, an integer has at most 15 digits, and a double tells all numbers of so many digits apart. */
const MAX_SCALED = 1e15;
/** A smaller number is written with an exponent. */
const MIN_DECIMAL = 1e-6;
const MAX_INT32 = 2 ** 31 - 1;

// The codes of some characters.
const LINE_FEED = 10;
const QUOTE = 34;
const DASH = 45;
const DOT = 46;
const ZERO = 48;
const COLON = 58;
const LETTER_T = 84;
const LETTER_Z = 90;
const BACKSLASH = 92;
const FIRST_PRINTABLE = 32;
const LAST_PRINTABLE = 126;

/** See the top of this file. */
export class LineBuilder {
  /** The lines so far: the first {@link length} bytes. Replaced when it grows. */
  bytes: Buffer;
  length = 0;
  #view: DataView;
  /** The date that was written last, its day, and its text. A ping mostly has the same date twice. */
  #dateMs = Number.NaN;
  #dayMs = Number.NaN;
  readonly #date = new Uint8Array(DATE_LENGTH);
  readonly #dateView = new DataView(this.#date.buffer);
  readonly #texts = new Map<string, LinePart>();

  /** @param capacity the expected number of bytes; memory that is not used costs nothing */
  constructor(capacity = FIRST_CAPACITY) {
    this.bytes = Buffer.allocUnsafeSlow(Math.max(capacity, FIRST_CAPACITY));
    this.#view = viewOf(this.bytes);
  }

  /** Forgets the lines and keeps the buffer. */
  clear(): void {
    this.length = 0;
  }

  /** Makes space for so many more bytes behind the lines. */
  reserve(space: number): void {
    if (this.length + space > this.bytes.length) this.#grow(space);
  }

  /** Copies a prepared text. */
  part(part: LinePart): void {
    const { words } = part;
    const space = words.length * WORD_BYTES;
    if (this.length + space > this.bytes.length) this.#grow(space);
    const view = this.#view;
    let at = this.length;
    for (let word = 0; word < words.length; word++) {
      view.setFloat64(at, words[word] as number, true);
      at += WORD_BYTES;
    }
    this.length += part.length;
  }

  /** Ends a line. */
  endLine(): void {
    if (this.length === this.bytes.length) this.#grow(1);
    this.bytes[this.length++] = LINE_FEED;
  }

  /** A date in UTC, without quotes. `atMs` must be in the years 1970–9999. */
  date(atMs: number): void {
    if (this.length + DATE_LENGTH > this.bytes.length) this.#grow(DATE_LENGTH);
    if (atMs !== this.#dateMs) this.#setDate(atMs);
    const from = this.#dateView;
    const view = this.#view;
    for (let offset = 0; offset < DATE_LENGTH; offset += WORD_BYTES)
      view.setFloat64(this.length + offset, from.getFloat64(offset, true), true);
    this.length += DATE_LENGTH;
  }

  /** A MAC as 12 hex digits, with colons between the pairs. */
  mac(mac: Mac): void {
    if (this.length + VALUE_BYTES > this.bytes.length) this.#grow(VALUE_BYTES);
    const { bytes } = this;
    let at = this.length;
    for (let index = 0; index < mac.length; index += 2) {
      if (index > 0) bytes[at++] = COLON;
      bytes[at++] = mac.charCodeAt(index);
      bytes[at++] = mac.charCodeAt(index + 1);
    }
    this.length = at;
  }

  #setDate(atMs: number): void {
    this.#dateMs = atMs;
    // The time of the day, ms; NaN before the first date.
    let ofDay = Math.floor(atMs) - this.#dayMs;
    if (!(ofDay >= 0 && ofDay < ONE_DAY)) ofDay = this.#startDay(atMs);
    const bytes = this.#date;
    const milliseconds = ofDay % 1000;
    const seconds = (ofDay - milliseconds) / 1000;
    const minutes = (seconds / 60) | 0;
    const hours = (minutes / 60) | 0;
    bytes[10] = LETTER_T;
    this.#twoDigits(11, hours);
    bytes[13] = COLON;
    this.#twoDigits(14, minutes - hours * 60);
    bytes[16] = COLON;
    this.#twoDigits(17, seconds - minutes * 60);
    bytes[19] = DOT;
    const hundreds = (milliseconds / 100) | 0;
    bytes[20] = ZERO + hundreds;
    this.#twoDigits(21, milliseconds - hundreds * 100);
    bytes[23] = LETTER_Z;
  }

  /** The value `null`. */
  nothing(): void {
    this.part(NULL);
  }

  /** Any finite number. */
  number(value: number): void {
    if (this.length + VALUE_BYTES > this.bytes.length) this.#grow(VALUE_BYTES);
    if (value >= 0 && value <= MAX_INT32 && Number.isInteger(value)) {
      this.#integer(value);
      return;
    }
    const size = Math.abs(value);
    const scaled = Math.round(size * DECIMALS_FACTOR);
    const hasFewDecimals = scaled < MAX_SCALED && scaled / DECIMALS_FACTOR === size;
    const whole = Math.floor(size);
    if (!hasFewDecimals || size < MIN_DECIMAL || whole > MAX_INT32) {
      this.json(value);
      return;
    }
    if (value < 0) this.bytes[this.length++] = DASH;
    this.#integer(whole);
    this.#decimals(scaled - whole * DECIMALS_FACTOR);
  }

  /** A text in quotes. */
  text(text: string): void {
    const known = this.#texts.get(text);
    if (known === undefined) this.#newText(text);
    else this.part(known);
  }

  /** Writes a text that is not among those kept, and keeps it if it may be a part. */
  #newText(text: string): void {
    const { length } = text;
    const space = length * BYTES_PER_CHARACTER + VALUE_BYTES;
    if (this.length + space > this.bytes.length) this.#grow(space);
    const { bytes } = this;
    let at = this.length;
    bytes[at++] = QUOTE;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      const isPlain = code >= FIRST_PRINTABLE && code <= LAST_PRINTABLE && code !== QUOTE && code !== BACKSLASH;
      if (!isPlain) {
        this.json(text);
        return;
      }
      bytes[at++] = code;
    }
    bytes[at++] = QUOTE;
    this.length = at;
    if (length <= MAX_TEXT_LENGTH && this.#texts.size < MAX_TEXTS) this.#texts.set(text, linePart(`"${text}"`));
  }

  /** Any value, slowly. */
  json(value: unknown): void {
    this.raw(JSON.stringify(value));
  }

  /** A text that is JSON already. */
  raw(text: string): void {
    const space = Buffer.byteLength(text);
    if (this.length + space > this.bytes.length) this.#grow(space);
    this.length += this.bytes.write(text, this.length);
  }

  /** A non-negative 32-bit integer. */
  #integer(value: number): void {
    let digits = 1;
    for (let limit = 10; digits < 10 && value >= limit; limit *= 10) digits++;
    const end = this.length + digits;
    let rest = value;
    for (let at = end - 1; at >= this.length; at--) {
      const tenth = (rest / 10) | 0;
      this.bytes[at] = ZERO + (rest - tenth * 10);
      rest = tenth;
    }
    this.length = end;
  }

  /** The decimals after the point, as an integer of {@link DECIMALS} digits; nothing for 0. */
  #decimals(decimals: number): void {
    if (decimals === 0) return;
    let rest = decimals;
    let digits = DECIMALS;
    for (; rest % 10 === 0; digits--) rest = (rest / 10) | 0;
    this.bytes[this.length] = DOT;
    const end = this.length + 1 + digits;
    for (let at = end - 1; at > this.length; at--) {
      const tenth = (rest / 10) | 0;
      this.bytes[at] = ZERO + (rest - tenth * 10);
      rest = tenth;
    }
    this.length = end;
  }

  /** Two digits of the date. */
  #twoDigits(at: number, value: number): void {
    const tens = (value / 10) | 0;
    this.#date[at] = ZERO + tens;
    this.#date[at + 1] = ZERO + value - tens * 10;
  }

  /** Notes the text of a time's day. Returns the time of the day, ms. */
  #startDay(atMs: number): number {
    const date = formatDate(atMs);
    for (let index = 0; index < DAY_LENGTH; index++) this.#date[index] = date.charCodeAt(index);
    this.#dayMs = Math.floor(atMs / ONE_DAY) * ONE_DAY;
    return Math.floor(atMs) - this.#dayMs;
  }

  #grow(space: number): void {
    const larger = Buffer.allocUnsafeSlow(2 * this.bytes.length + space);
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
    this.#view = viewOf(larger);
  }
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
