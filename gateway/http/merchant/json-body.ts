/**
 * Parses merchants' JSON with exact whole numbers (interfaces.md §2, int64): a whole number that a JavaScript number
 * can't hold becomes a bigint, whether written as 9223372036854775807, 9223372036854775807.0 or 9223372036854775807e0.
 *
 * `JSON.parse` is many times as fast as a parser written in JavaScript, but rounds. So the text is scanned first:
 * numbers that could be rounded are quoted, with a mark that no body can contain, and converted to exact numbers after
 * parsing. The scan also limits the nesting, to protect the stack, and the number of values: a mebibyte of `{}` would
 * block the event loop for more than 50 ms.
 */
import { randomBytes } from 'node:crypto';
import { LockgateError } from '../../../proto/errors.js';
import { Refusal } from './refusal.js';

/** Maximum number of levels of nested objects and arrays. */
export const MAX_DEPTH = 64;
/** Maximum number of members, items, objects and arrays: a thousand users have some ten values each. */
export const MAX_VALUES = 32_768;
/** Maximum number of long numbers, which JSON.parse could round: each costs many times as much as another value. */
export const MAX_LONG_NUMBERS = 4_096;
/** A number of up to this many digits is always exact as a JavaScript number. */
const EXACT_DIGITS = 15;
/** Numbers with larger exponents are not expanded: they can't be an int64. */
const MAX_EXPONENT = 40;

/**
 * Precedes the digits of a quoted number. It is random for each process, so that no body can contain a string that
 * starts with it.
 */
const MARK = `${randomBytes(16).toString('hex')}:`;
const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * Returns the value of a body.
 *
 * @throws LockgateError `input-json` if the body is not JSON in UTF-8, or nested too deeply
 * @throws Refusal 413 `too-many-values`
 */
export function readJsonBody(bytes: Buffer): unknown {
  const text = decodeUtf8(bytes);
  if (text.trim() === '') throw new LockgateError('input-json', 'the body is empty: expected JSON');
  const { quoted, hasMarks } = quoteNumbers(text);
  let value: unknown;
  try {
    value = JSON.parse(quoted);
  } catch {
    // The parser's message quotes the body, which may contain a password.
    throw notJson();
  }
  return hasMarks ? withoutMarks(value) : value;
}

function notJson(): LockgateError {
  return new LockgateError('input-json', 'the body is not valid JSON');
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new LockgateError('input-json', 'the body is not valid UTF-8');
  }
}

// Character codes.
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const MINUS = 0x2d;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * Quotes and marks each number that may not be exact as a JavaScript number.
 *
 * @throws LockgateError `input-json`
 * @throws Refusal 413 `too-many-values`
 */
function quoteNumbers(text: string): { readonly quoted: string; readonly hasMarks: boolean } {
  const pieces: string[] = [];
  let copiedTo = 0;
  let [depth, values] = [0, 0];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) index = endOfString(text, index);
    else if (code === COMMA) values += 1;
    else if (code === OPENING_BRACKET || code === OPENING_BRACE) {
      depth += 1;
      values += 1;
    } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) depth -= 1;
    else if (code === MINUS || isDigit(code)) {
      const { end, isPlain } = endOfNumber(text, index);
      const number = isPlain ? '' : text.slice(index, end);
      if (!isPlain && !isExact(number)) {
        if (!NUMBER.test(number)) throw notJson();
        pieces.push(text.slice(copiedTo, index), `"${MARK}${number}"`);
        // Each number adds two pieces.
        if (pieces.length > 2 * MAX_LONG_NUMBERS)
          throw tooMany(MAX_LONG_NUMBERS, `numbers of more than ${EXACT_DIGITS} digits or with an exponent`);
        copiedTo = end;
      }
      index = end - 1;
    }
    if (depth > MAX_DEPTH)
      throw new LockgateError('input-json', `the body is nested more than ${MAX_DEPTH} levels deep`);
    if (values > MAX_VALUES) throw tooMany(MAX_VALUES, 'values (members, items, objects and arrays)');
  }
  return { quoted: pieces.join('') + text.slice(copiedTo), hasMarks: pieces.length > 0 };
}

function tooMany(max: number, things: string): Refusal {
  const detail = `the body has more than ${max.toLocaleString('en')} ${things}, the maximum`;
  return new Refusal({ status: 413, code: 'too-many-values', detail });
}

/** The position of the closing quote, or the end of the text. */
function endOfString(text: string, opening: number): number {
  let quote = opening;
  do {
    quote = text.indexOf('"', quote + 1);
    if (quote === -1) return text.length;
  } while (isEscaped(text, quote));
  return quote;
}

/** Whether an odd number of backslashes precedes the position. */
function isEscaped(text: string, position: number): boolean {
  let firstBackslash = position;
  while (text.charCodeAt(firstBackslash - 1) === BACKSLASH) firstBackslash -= 1;
  return (position - firstBackslash) % 2 === 1;
}

/** Where a number ends, and whether it is certainly exact: no exponent and few digits. */
function endOfNumber(text: string, start: number): { readonly end: number; readonly isPlain: boolean } {
  let [end, digits, hasExponent] = [start, 0, false];
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (isDigit(code)) digits += 1;
    // An "e" or "E".
    else if ((code | 0x20) === 0x65) hasExponent = true;
    // A plus, a minus, a decimal point.
    else if (code !== 0x2b && code !== 0x2d && code !== 0x2e) break;
  }
  return { end, isPlain: digits <= EXACT_DIGITS && !hasExponent };
}

/**
 * Whether a JavaScript number certainly holds the number exactly. No two short numbers of up to 2^53 map to the same
 * double. A result of 0 is excluded, since it may be a tiny number that was rounded.
 */
function isExact(number: string): boolean {
  const value = Number(number);
  return number.length <= EXACT_DIGITS && value !== 0 && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/**
 * Restores marked numbers in place. Recursion is safe, since the nesting is limited.
 *
 * @throws LockgateError `input-json` if a number was the name of a member
 */
function withoutMarks(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? toNumber(value.slice(MARK.length)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) value[index] = withoutMarks(value[index]);
    return value;
  }
  const members = value as Record<string, unknown>;
  for (const name of Object.keys(members)) {
    if (name.startsWith(MARK)) throw notJson();
    const member = members[name];
    if (typeof member !== 'string' && typeof member !== 'object') continue;
    const restored = withoutMarks(member);
    if (restored === member) continue;
    // An ordinary assignment would set the prototype.
    if (name === '__proto__') Object.defineProperty(members, name, { value: restored, enumerable: true });
    else members[name] = restored;
  }
  return value;
}

/**
 * Converts a marked number: a whole number becomes a number if that is exact, otherwise a bigint. Any other number
 * becomes a number that is not whole, so that it is not accepted as a whole number: NaN if rounding would make it
 * whole.
 */
function toNumber(text: string): number | bigint {
  const whole = toWhole(text);
  // 1.00000000000000000001 would be rounded to a whole number.
  if (whole === undefined) return Number.isInteger(Number(text)) ? Number.NaN : Number(text);
  const number = Number(whole);
  return Number.isSafeInteger(number) ? number : whole;
}

/** The whole number that the text represents; undefined if the number is not whole or too large for an int64. */
function toWhole(text: string): bigint | undefined {
  const [, sign = '', integer = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? [];
  const shift = Number(exponent) - fraction.length;
  const digits = (integer + fraction).replace(/^0+(?=\d)/, '');
  // Too large or too small for an int64, whatever its digits: to write it out could take megabytes.
  if (Math.abs(shift) > MAX_EXPONENT + fraction.length || digits.length > MAX_EXPONENT * 2) return undefined;
  if (shift >= 0) return BigInt(`${sign}${digits}${'0'.repeat(shift)}`);
  // The last `-shift` digits are the fraction, which must be zero.
  const padded = digits.padStart(1 - shift, '0');
  if (!/^0*$/.test(padded.slice(shift))) return undefined;
  return BigInt(`${sign}${padded.slice(0, shift)}`);
}
