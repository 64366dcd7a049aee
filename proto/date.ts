/**
 * Dates as text: RFC 3339 to milliseconds since the epoch. A trace has two in every line, so what we write ourselves
 * (`2026-11-20T06:00:00.000Z`) is read digit by digit; other spellings take the long way.
 */
import { Days, Hours, Minutes, Seconds } from './clock.js';

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** What a sentence says was expected of a date. */
export const DATE_EXPECTED = 'a date such as 2026-11-20T06:00:00.000Z';

/** Milliseconds since the epoch; NaN where the text is no date of RFC 3339. Finer than a millisecond is cut off. */
export function parseDate(text: string): number {
  const own = text.length === OWN_LENGTH ? parseCanonicalDate(lettersOf(text), 0) : Number.NaN;
  return Number.isNaN(own) ? parseAnySpelling(text) : own;
}

/** The letters of {@link OWN_LENGTH} that are looked at, so that text and bytes are read by the same code. */
const letters = new Uint8Array(24);

/** A letter that is no byte becomes 0, which no date has. */
function lettersOf(text: string): Uint8Array {
  for (let index = 0; index < OWN_LENGTH; index++) {
    const code = text.charCodeAt(index);
    letters[index] = code < 128 ? code : 0;
  }
  return letters;
}

/** Our own spelling, `2026-11-20T06:00:00.000Z`, from `at` in the bytes of a text; NaN for any other. */
export function parseCanonicalDate(bytes: Uint8Array, at: number): number {
  if (!hasOurMarks(bytes, at)) return Number.NaN;
  const year = twoDigits(bytes, at) * 100 + twoDigits(bytes, at + 2);
  const month = twoDigits(bytes, at + 5);
  const day = twoDigits(bytes, at + 8);
  const hour = twoDigits(bytes, at + 11);
  const minute = twoDigits(bytes, at + 14);
  const second = twoDigits(bytes, at + 17);
  const millisecond = twoDigits(bytes, at + 20) * 10 + oneDigit(bytes, at + 22);
  return toMs(year, month, day, hour, minute, second, millisecond);
}

const OWN_LENGTH = 24;
const CODE_Z = 90;
const CODE_T = 84;
const CODE_DASH = 45;
const CODE_COLON = 58;
const CODE_DOT = 46;
const CODE_0 = 48;

function hasOurMarks(bytes: Uint8Array, at: number): boolean {
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

/** One digit; NaN for anything else. */
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

/** NaN where a part is out of its range; any part that is NaN makes the outcome NaN. */
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
  const before = year - 1;
  const leapDaysBefore = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400);
  const dayOfEra = before * 365 + leapDaysBefore + (DAYS_BEFORE_MONTH[month - 1] as number) + leapDay + day - 1;
  return Days(dayOfEra - DAYS_BEFORE_1970) + Hours(hour) + Minutes(minute) + Seconds(second) + milliseconds;
}

/** From the first day of the year 1 to 1970-01-01. */
const DAYS_BEFORE_1970 = 719_162;
