/**
 * Reads a lock's ping in our own spelling: the very bytes that writer.ts makes of one without `raw`. Nearly all
 * lines of a recorded or simulated trace are such, and reading them member by member is several times as fast as
 * JSON.parse, which knows nothing of what comes next. Whatever is spelled otherwise is left to the long way: this never
 * says that a line is wrong, and what it reads is what the long way would read.
 */
import { parseOwnDate } from '../date.js';
import type { LockState, Ping, PingUplink, Position, PowerMode, PowerSettings, TetherState } from '../wire/ping.js';
import { REASONS, type Reason } from '../wire/reasons.js';

/** Letters to be compared four at a time; the last four overlap those before where they are not a multiple of four. */
interface Letters {
  readonly length: number;
  readonly fours: Int32Array;
  readonly places: Int32Array;
}

/** Of four letters or more, all of them ASCII. */
function lettersOf(text: string): Letters {
  const view = new DataView(new TextEncoder().encode(text).buffer);
  const places: number[] = [];
  for (let place = 0; place + FOUR <= view.byteLength; place += FOUR) places.push(place);
  if (view.byteLength % FOUR !== 0) places.push(view.byteLength - FOUR);
  const fours = places.map((place) => view.getInt32(place, true));
  return { length: view.byteLength, places: Int32Array.from(places), fours: Int32Array.from(fours) };
}

const FOUR = 4;

/** What stands between the values, in the order of ping-json.ts. A word that is a value has its closing quote. */
const TO_AT = lettersOf('{"at":"');
const TO_MAC = lettersOf('","mac":"');
const TO_TYPE = lettersOf('","event":"ping","source":"lock","ping":{"ping_type":"');
const TO_REASON = lettersOf(',"reason":"');
const TO_LOCK_STATE = lettersOf(',"lock_state":"');
const TO_BATTERY = lettersOf(',"battery_percent":');
const TO_FIRMWARE = lettersOf(',"firmware_version":"');
const TO_VOLTAGE = lettersOf(',"ebike_voltage":');
const TO_TETHER = lettersOf(',"tether_state":"');
const TO_LATITUDE = lettersOf(',"latitude":');
const TO_LONGITUDE = lettersOf(',"longitude":');
const TO_SPEED = lettersOf(',"speed":');
const TO_DIRECTION = lettersOf(',"direction":');
const TO_UNCERTAINTY = lettersOf(',"uncertainty":');
const TO_BOOT = lettersOf(',"boot":');
const TO_SEQUENCE = lettersOf(',"sequence":');
const TO_DATE = lettersOf(',"date":"');
const TO_MODE = lettersOf('","power":{"mode":"');
const TO_RIDE_TRACKING = lettersOf(',"ride_tracking":');
const TO_AIRPLANE = lettersOf(',"airplane":');
const TO_RECOVERY = lettersOf(',"recovery":');
const TO_KEPT = lettersOf(',"kept":');
const TO_DROPPED = lettersOf(',"dropped":');
const NULL = lettersOf('null');
const TRUE = lettersOf('true');
const FALSE = lettersOf('false');

interface Word<T> {
  readonly letters: Letters;
  readonly value: T;
}

const wordsOf = <T extends string>(...values: T[]): Word<T>[] =>
  values.map((value) => ({ letters: lettersOf(`${value}"`), value }));

const PING_TYPES = wordsOf<Ping['kind']>('gps', 'cellular', 'close_connection');
const LOCK_STATES = wordsOf<LockState>('locked', 'unlocked', 'unknown');
const TETHER_STATES = wordsOf<TetherState>('detached', 'attached', 'unknown');
const MODES = wordsOf<PowerMode>('MID', 'HIGH');

/** Reasons by their first letter after `REASON_`; a longer one before one that it begins with. */
const REASON_LETTER = 'REASON_'.length;
const REASONS_BY_LETTER: readonly Word<Reason>[][] = Array.from({ length: 128 }, (_, code) =>
  wordsOf<Reason>(...REASONS.map((row) => row.name).filter((name) => name.charCodeAt(REASON_LETTER) === code)),
);

/** Digits that a mantissa may have and still be exact. */
const EXACT_DIGITS = 15;
const POWERS_OF_TEN = Array.from({ length: EXACT_DIGITS + 1 }, (_, exponent) => 10 ** exponent);
const UINT32_MOST = 2 ** 32 - 1;
const FIRMWARE_LETTERS_MOST = 32;

const QUOTE = 34;
const DASH = 45;
const DOT = 46;
const ZERO = 48;
const BACKSLASH = 92;
const COLON = 58;
const BRACE = 125;
const DATE_LETTERS = 24;

/** One line at a time; what was read stands in its members until the next. */
export class OwnLine {
  /** Ms since the epoch. */
  atMs = 0;
  /** The 48 bits of the MAC, and where its text begins. */
  macNumber = 0;
  macStart = 0;

  #bytes: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #at = 0;
  #end = 0;
  #dateStart = 0;
  #isOwn = true;
  #firmware: Word<string> | null = null;
  readonly #powers = new Map<number, PowerSettings>();

  /** Reads the line from `start` to before `end`; undefined where it is not in our own spelling. */
  read(bytes: Uint8Array, start: number, end: number): PingUplink | undefined {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.#at = start;
    this.#end = end;
    this.#isOwn = true;
    this.#pass(TO_AT);
    if (!this.#isOwn) return undefined;
    this.#dateStart = this.#at;
    this.atMs = this.#date();
    this.#pass(TO_MAC);
    this.#mac();
    this.#pass(TO_TYPE);
    const kind = this.#word(PING_TYPES);
    if (!this.#isOwn || kind === undefined) return undefined;
    const uplink = this.#envelope(this.#ping(kind));
    return this.#isOwn && this.#at === end ? uplink : undefined;
  }

  #ping(kind: Ping['kind']): Ping {
    this.#pass(TO_REASON);
    const reason = this.#reason();
    this.#pass(TO_LOCK_STATE);
    const lockState = this.#word(LOCK_STATES) ?? 'unknown';
    this.#pass(TO_BATTERY);
    const batteryPercent = this.#count();
    if (kind === 'close_connection') {
      if (reason !== 'REASON_CLOSE_CONNECTION') this.#isOwn = false;
      return { kind, reason: 'REASON_CLOSE_CONNECTION', lockState, batteryPercent };
    }
    if (kind === 'gps') {
      const ebikeVolts = this.#volts();
      const tetherState = this.#tether();
      const latitudeDegrees = this.#numberAfter(TO_LATITUDE);
      const longitudeDegrees = this.#numberAfter(TO_LONGITUDE);
      const speedMetersPerSecond = this.#numberAfter(TO_SPEED);
      const directionDegrees = this.#numberAfter(TO_DIRECTION);
      const position = { latitudeDegrees, longitudeDegrees, uncertaintyMeters: this.#numberAfter(TO_UNCERTAINTY) };
      return {
        kind,
        reason,
        lockState,
        batteryPercent,
        ebikeVolts,
        tetherState,
        position,
        speedMetersPerSecond,
        directionDegrees,
      };
    }
    this.#pass(TO_FIRMWARE);
    const firmwareVersion = this.#text();
    const ebikeVolts = this.#volts();
    const tetherState = this.#tether();
    const position = this.#cellPosition();
    return { kind, reason, lockState, batteryPercent, firmwareVersion, ebikeVolts, tetherState, position };
  }

  #cellPosition(): Position | null {
    if (!this.#skip(TO_LATITUDE)) return null;
    const latitudeDegrees = this.#number();
    const longitudeDegrees = this.#numberAfter(TO_LONGITUDE);
    return { latitudeDegrees, longitudeDegrees, uncertaintyMeters: this.#numberAfter(TO_UNCERTAINTY) };
  }

  #envelope(body: Ping): PingUplink {
    this.#pass(TO_BOOT);
    const boot = this.#count();
    this.#pass(TO_SEQUENCE);
    const sequence = this.#count();
    this.#pass(TO_DATE);
    const timeMs = this.#dateLikeAt();
    this.#pass(TO_MODE);
    const power = this.#power();
    const kept = this.#skip(TO_KEPT) ? this.#count() : 0;
    const dropped = this.#skip(TO_DROPPED) ? this.#count() : 0;
    this.#close();
    this.#close();
    return { boot, sequence, timeMs, power, kept, dropped, body };
  }

  /** There are 16 of them, so that each need be made once. */
  #power(): PowerSettings {
    const mode = this.#word(MODES) ?? 'MID';
    this.#pass(TO_RIDE_TRACKING);
    const rideTracking = this.#flag();
    this.#pass(TO_AIRPLANE);
    const airplane = this.#flag();
    this.#pass(TO_RECOVERY);
    const recovery = this.#flag();
    this.#close();
    const key = (mode === 'HIGH' ? 8 : 0) + (rideTracking ? 4 : 0) + (airplane ? 2 : 0) + (recovery ? 1 : 0);
    const known = this.#powers.get(key);
    if (known !== undefined) return known;
    const made = Object.freeze({ mode, rideTracking, airplane, recovery });
    this.#powers.set(key, made);
    return made;
  }

  /** Goes past `expected`, or finds that the line is not in our own spelling. */
  #pass(expected: Letters): void {
    if (!this.#skip(expected)) this.#isOwn = false;
  }

  #skip(expected: Letters): boolean {
    const at = this.#at;
    if (at + expected.length > this.#end) return false;
    const view = this.#view;
    const { fours, places } = expected;
    for (let index = 0; index < fours.length; index++) {
      if (view.getInt32(at + (places[index] as number), true) !== fours[index]) return false;
    }
    this.#at = at + expected.length;
    return true;
  }

  #word<T>(words: readonly Word<T>[]): T | undefined {
    for (const word of words) {
      if (this.#skip(word.letters)) return word.value;
    }
    this.#isOwn = false;
    return undefined;
  }

  #reason(): Reason {
    const words = REASONS_BY_LETTER[this.#bytes[this.#at + REASON_LETTER] as number];
    return (words === undefined ? undefined : this.#word(words)) ?? this.#notOwn('REASON_NETWORK_PING');
  }

  #notOwn<T>(standIn: T): T {
    this.#isOwn = false;
    return standIn;
  }

  #flag(): boolean {
    if (this.#skip(FALSE)) return false;
    this.#pass(TRUE);
    return true;
  }

  #volts(): number | null {
    this.#pass(TO_VOLTAGE);
    return this.#skip(NULL) ? null : this.#number();
  }

  #tether(): TetherState {
    this.#pass(TO_TETHER);
    return this.#word(TETHER_STATES) ?? 'unknown';
  }

  /** The closing brace of an object. */
  #close(): void {
    if (this.#bytes[this.#at] !== BRACE) this.#isOwn = false;
    this.#at += 1;
  }

  /** Most pings are received in the very millisecond of their date, as simulated ones are, or soon after. */
  #dateLikeAt(): number {
    const at = this.#at;
    const other = this.#dateStart;
    if (at + DATE_LETTERS > this.#end) return this.#notOwn(0);
    const view = this.#view;
    for (let place = 0; place < DATE_LETTERS; place += FOUR) {
      if (view.getInt32(at + place, true) !== view.getInt32(other + place, true)) return this.#date();
    }
    this.#at = at + DATE_LETTERS;
    return this.atMs;
  }

  #date(): number {
    const timeMs = parseOwnDate(this.#bytes, this.#at);
    if (Number.isNaN(timeMs)) this.#isOwn = false;
    this.#at += DATE_LETTERS;
    return timeMs;
  }

  /** `A4:C1:38:F0:E1:D2`, in upper case as we print it. */
  #mac(): void {
    const bytes = this.#bytes;
    this.macStart = this.#at;
    let number = 0;
    for (let pair = 0; pair < 6; pair++) {
      const at = this.#at + 3 * pair;
      const value = hexDigit(bytes[at] as number) * 16 + hexDigit(bytes[at + 1] as number);
      if (!(value >= 0) || (pair < 5 && bytes[at + 2] !== COLON)) this.#isOwn = false;
      number = number * 256 + value;
    }
    this.macNumber = number;
    this.#at += 17;
  }

  /** A whole number from 0 to 2³²−1. */
  #count(): number {
    const bytes = this.#bytes;
    const start = this.#at;
    let at = start;
    let value = 0;
    for (let digit = (bytes[at] as number) - ZERO; digit >= 0 && digit <= 9; digit = (bytes[++at] as number) - ZERO)
      value = value * 10 + digit;
    const isLeadingZero = bytes[start] === ZERO && at > start + 1;
    if (at === start || at - start > EXACT_DIGITS || isLeadingZero || value > UINT32_MOST) this.#isOwn = false;
    this.#at = at;
    return value;
  }

  #numberAfter(expected: Letters): number {
    this.#pass(expected);
    return this.#number();
  }

  /** A number with so few digits that dividing by a power of ten rounds as reading it does: both are exact. */
  #number(): number {
    const bytes = this.#bytes;
    const isNegative = bytes[this.#at] === DASH;
    const start = isNegative ? this.#at + 1 : this.#at;
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
      if (decimals === 0) this.#isOwn = false;
    }
    const isLeadingZero = bytes[start] === ZERO && whole > 1;
    // An exponent, if there is one, is not what must come next.
    if (whole === 0 || whole + decimals > EXACT_DIGITS || isLeadingZero) return this.#notOwn(0);
    this.#at = at;
    const value = mantissa / (POWERS_OF_TEN[decimals] as number);
    return isNegative ? -value : value;
  }

  /** A text of plain letters, past its closing quote. Most pings have the same one, so the last is kept. */
  #text(): string {
    const bytes = this.#bytes;
    const start = this.#at;
    if (this.#firmware !== null && this.#skip(this.#firmware.letters)) return this.#firmware.value;
    let end = start;
    for (; bytes[end] !== QUOTE; end++) {
      const code = bytes[end] as number;
      if (!(code >= 32 && code < 127) || code === BACKSLASH || end - start >= FIRMWARE_LETTERS_MOST)
        return this.#notOwn('');
    }
    const value = String.fromCharCode(...bytes.subarray(start, end));
    this.#at = end + 1;
    // With its quote it must have four letters to be compared by fours.
    if (value.length >= FOUR - 1) this.#firmware = wordsOf(value)[0] as Word<string>;
    return value;
  }
}

/** NaN for what is no upper-case hex digit. */
function hexDigit(code: number): number {
  if (code >= ZERO && code <= 57) return code - ZERO;
  return code >= 65 && code <= 70 ? code - 55 : Number.NaN;
}
