/**
 * JSON as merchants send it, with whole numbers exact (interfaces.md §2, int64): what a JavaScript number can't hold
 * becomes a bigint, whether it is spelled 9223372036854775807, 9223372036854775807.0 or 9223372036854775807e0.
 *
 * The engine's own parser is many times as fast as any that is written in JavaScript, and rounds. So the text is looked
 * through first: numbers that could be rounded are put between quotes, with a mark that no body can have, and made
 * exact numbers again behind the parser. Nesting is bounded on the way, so that nothing after it fears for its stack;
 * and so is how much there is in a body, since a mebibyte of nothing but `{}` keeps the event loop longer than 50 ms.
 */
import { randomBytes } from 'node:crypto';
import { LockgateError } from '../../../proto/errors.js';
import { Refusal } from './refusal.js';

/** Objects and arrays inside each other. */
export const MAX_DEPTH = 64;
/** Values of a body: members, items, and the objects and arrays that have them. A thousand users have some ten each. */
export const MOST_VALUES = 32_768;
/** Numbers of a body that could be rounded, by their length or exponent: each costs many times what others do. */
export const MOST_LONG_NUMBERS = 4_096;
/** A number of so many digits is exact as a JavaScript number, whatever they are. */
const EXACT_DIGITS = 15;
/** Powers of ten that a number may have and still be an int64; beyond it is not worth writing out. */
const MAX_EXPONENT = 40;

/**
 * What stands before the digits of a number that was put between quotes. Drawn anew by each process, so that no body
 * can have a text that begins like it.
 */
const MARK = `${randomBytes(16).toString('hex')}:`;
const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * @throws LockgateError `input-json` where it is no JSON in UTF-8, or nested too deeply
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
    // What the parser says quotes the body, and a body may hold a password.
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
    throw new LockgateError('input-json', 'the body is not valid UTF-8, as JSON has to be');
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/**
 * Puts marked quotes around each number that a JavaScript number may not hold.
 *
 * @throws LockgateError `input-json`
 * @throws Refusal 413 `too-many-values`
 */
function quoteNumbers(text: string): { readonly quoted: string; readonly hasMarks: boolean } {
  const pieces: string[] = [];
  let done = 0;
  let [depth, values] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COMMA) values += 1;
    else if (code === 0x5b || code === 0x7b) {
      depth += 1;
      values += 1;
    } else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === 0x2d || isDigit(code)) {
      const { end, isPlain } = endOfNumber(text, at);
      const number = isPlain ? '' : text.slice(at, end);
      if (!isPlain && !isExact(number)) {
        if (!NUMBER.test(number)) throw notJson();
        pieces.push(text.slice(done, at), `"${MARK}${number}"`);
        // Two pieces each.
        if (pieces.length > 2 * MOST_LONG_NUMBERS)
          throw tooMany(MOST_LONG_NUMBERS, `numbers of more than ${EXACT_DIGITS} digits or with an exponent`);
        done = end;
      }
      at = end - 1;
    }
    if (depth > MAX_DEPTH)
      throw new LockgateError('input-json', `the body is nested more than ${MAX_DEPTH} deep, the most that is taken`);
    if (values > MOST_VALUES) throw tooMany(MOST_VALUES, 'values (members, items, objects and arrays)');
  }
  return { quoted: pieces.join('') + text.slice(done), hasMarks: pieces.length > 0 };
}

function tooMany(most: number, what: string): Refusal {
  const detail = `the body has more than ${most.toLocaleString('en')} ${what}, the most that is taken`;
  return new Refusal({ status: 413, code: 'too-many-values', detail });
}

/** The place of the closing quote, or the end of the text. */
function endOfString(text: string, opening: number): number {
  let at = opening;
  do {
    at = text.indexOf('"', at + 1);
    if (at === -1) return text.length;
  } while (isEscaped(text, at));
  return at;
}

/** Whether an odd number of backslashes stands before it. */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** Where a number ends, and whether it has no exponent and so few digits that it is exact as it is. */
function endOfNumber(text: string, start: number): { readonly end: number; readonly isPlain: boolean } {
  let [end, digits, hasExponent] = [start, 0, false];
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (isDigit(code)) digits += 1;
    // An e or E.
    else if ((code | 0x20) === 0x65) hasExponent = true;
    // A plus, a minus, a point.
    else if (code !== 0x2b && code !== 0x2d && code !== 0x2e) break;
  }
  return { end, isPlain: digits <= EXACT_DIGITS && !hasExponent };
}

/** Short numbers with an exponent are exact up to 2^53: no two of so few digits have one double, but for 0. */
function isExact(number: string): boolean {
  const value = Number(number);
  return number.length <= EXACT_DIGITS && value !== 0 && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** The numbers again, in place. Nesting is bounded. @throws LockgateError `input-json` where one is a member's name */
function withoutMarks(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? toNumber(value.slice(MARK.length)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) value[at] = withoutMarks(value[at]);
    return value;
  }
  const members = value as Record<string, unknown>;
  for (const name of Object.keys(members)) {
    if (name.startsWith(MARK)) throw notJson();
    const member = members[name];
    if (typeof member !== 'string' && typeof member !== 'object') continue;
    const plain = withoutMarks(member);
    if (plain === member) continue;
    // Assigned in the usual way, a member named so would be none.
    if (name === '__proto__') Object.defineProperty(members, name, { value: plain, enumerable: true });
    else members[name] = plain;
  }
  return value;
}

/** A whole number as a number where that is exact, else as a bigint; any other as a number that is not whole. */
function toNumber(text: string): number | bigint {
  const whole = toWhole(text);
  // 1.00000000000000000001 would be rounded to a whole number, which nobody wrote.
  if (whole === undefined) return Number.isInteger(Number(text)) ? Number.NaN : Number(text);
  const number = Number(whole);
  return Number.isSafeInteger(number) ? number : whole;
}

function toWhole(text: string): bigint | undefined {
  const [, sign = '', integer = '', fraction = '', exponent = '0'] = NUMBER.exec(text) ?? [];
  const shift = Number(exponent) - fraction.length;
  const digits = (integer + fraction).replace(/^0+(?=\d)/, '');
  if (Math.abs(shift) > MAX_EXPONENT + fraction.length || digits.length > MAX_EXPONENT * 2) return undefined;
  if (shift >= 0) return BigInt(`${sign}${digits}${'0'.repeat(shift)}`);
  const kept = digits.padStart(1 - shift, '0');
  if (!/^0*$/.test(kept.slice(shift))) return undefined;
  return BigInt(`${sign}${kept.slice(0, shift)}`);
}
