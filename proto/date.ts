/**
 * Parses RFC 3339 dates to milliseconds since the epoch. A trace has two dates in every line, so there is a fast path
 * for the canonical spelling (`2026-11-20T06:00:00.000Z`, as this program writes dates). Other spellings take a slower
 * path.
 */
import { Days, Hours, Minutes, Seconds } from './clock.js';

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** What an error says was expected instead of a wrong date. */
export const DATE_EXPECTED = 'a date such as 2026-11-20T06:00:00.000Z';

/** Milliseconds since the epoch; NaN if the text is not an RFC 3339 date. Fractions of a millisecond are cut off. */
export function parseDate(text: string): number {
  const timeMs = text.length === CANONICAL_LENGTH ? parseCanonicalDate(toBytes(text), 0) : Number.NaN;
  return Number.isNaN(timeMs) ? parseAnySpelling(text) : timeMs;
}

const CANONICAL_LENGTH = 24;

/** Receives the characters of a text, so that one parser reads texts and bytes. */
const buffer = new Uint8Array(CANONICAL_LENGTH);

/** Copies the characters to `buffer`. A character outside ASCII becomes 0, which no date contains. */
function toBytes(text: string): Uint8Array {
  for (let index = 0; index < CANONICAL_LENGTH; index++) {
    const code = text.charCodeAt(index);
    buffer[index] = code < 128 ? code : 0;
  }
  return buffer;
}

/** Parses the date in the canonical spelling that starts at byte `at`; NaN for any other spelling. */
export function parseCanonicalDate(bytes: Uint8Array, at: number): number {
  if (!hasCanonicalSeparators(bytes, at)) return Number.NaN;
  const year = twoDigits(bytes, at) * 100 + twoDigits(bytes, at + 2);
  const month = twoDigits(bytes, at + 5);
  const day = twoDigits(bytes, at + 8);
  const hour = twoDigits(bytes, at + 11);
  const minute = twoDigits(bytes, at + 14);
  const second = twoDigits(bytes, at + 17);
  const millisecond = twoDigits(bytes, at + 20) * 10 + oneDigit(bytes, at + 22);
  return toMs(year, month, day, hour, minute, second, millisecond);
}

const CODE_Z = 90;
const CODE_T = 84;
const CODE_DASH = 45;
const CODE_COLON = 58;
const CODE_DOT = 46;
const CODE_0 = 48;

function hasCanonicalSeparators(bytes: Uint8Array, at: number): boolean {
  return (
    bytes[at + 4] === CODE_DASH &&
    bytes[at + 7] === CODE_DASH &&
    bytes[at + 10] === CODE_T &&
    bytes[at + 13] === CODE_COLON &&
    bytes[at + 16] === CODE_COLON &&
    bytes[at + 19] === CODE_DOT &&
    bytes[at + 23] === CODE_Z
  );
}

/** The value of the digit at a position; NaN for any other character, and after the last one. */
function oneDigit(bytes: Uint8Array, at: number): number {
  const value = (bytes[at] as number) - CODE_0;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

function twoDigits(bytes: Uint8Array, at: number): number {
  return oneDigit(bytes, at) * 10 + oneDigit(bytes, at + 1);
}

function parseAnySpelling(text: string): number {
  const match = RFC_3339.exec(text);
  if (match === null) return Number.NaN;
  const part = (index: number): number => Number(match[index]);
  const milliseconds = Math.floor(Number(`0.${match[7] ?? '0'}`) * 1000);
  const local = toMs(part(1), part(2), part(3), part(4), part(5), part(6), milliseconds);
  if (match[8] === undefined) return local;
  const [hours, minutes] = [part(9), part(10)];
  if (hours > 23 || minutes > 59) return Number.NaN;
  const offset = Hours(hours) + Minutes(minutes);
  return match[8] === '+' ? local - offset : local + offset;
}

const DAYS_BEFORE_MONTH = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const DAYS_OF_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** The time of a date's parts, ms since the epoch; NaN if a part is NaN or out of its range. */
function toMs(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
  milliseconds: number,
): number {
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= (DAYS_OF_MONTH[month - 1] as number))) return Number.NaN;
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return Number.NaN;
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  if (month === 2 && day === 29 && !isLeap) return Number.NaN;
  const leapDay = isLeap && month > 2 ? 1 : 0;
  const yearsBefore = year - 1;
  const leapDaysBefore = Math.floor(yearsBefore / 4) - Math.floor(yearsBefore / 100) + Math.floor(yearsBefore / 400);
  // Days since the first day of the year 1.
  const dayOfEra = yearsBefore * 365 + leapDaysBefore + (DAYS_BEFORE_MONTH[month - 1] as number) + leapDay + day - 1;
  return Days(dayOfEra - DAYS_BEFORE_1970) + Hours(hour) + Minutes(minute) + Seconds(second) + milliseconds;
}

/** The number of days from the first day of the year 1 to 1970-01-01. */
const DAYS_BEFORE_1970 = 719_162;
