/**
 * JSON as merchants send it, with whole numbers exact (interfaces.md §2, int64): what a JavaScript number can't hold
 * becomes a bigint, whether it is spelled 9223372036854775807, 9223372036854775807.0 or 9223372036854775807e0.
 *
 * The text is looked through once before it is parsed. Nesting is bounded, so that nothing after it need fear for its
 * stack; and only a text with a number that could be rounded goes the slower, exact way.
 */
import { parse } from 'lossless-json';
import { LockgateError } from '../../proto/errors.js';

/** Objects and arrays inside each other. */
export const MAX_DEPTH = 64;
/** A number of so many digits is exact as a JavaScript number, whatever they are. */
const EXACT_DIGITS = 15;
/** Powers of ten that a number may have and still be an int64; beyond it is not worth writing out. */
const MAX_EXPONENT = 40;

/** @throws LockgateError `input-json` where it is no JSON in UTF-8, or nested too deeply */
export function readJsonBody(bytes: Buffer): unknown {
  const text = decodeUtf8(bytes);
  if (text.trim() === '') throw new LockgateError('input-json', 'the body is empty: expected JSON');
  const isExact = lookThrough(text);
  try {
    return isExact ? JSON.parse(text) : parse(text, null, { parseNumber, onDuplicateKey: ({ newValue }) => newValue });
  } catch {
    // What the parser says quotes the body, and a body may hold a password.
    throw new LockgateError('input-json', 'the body is not valid JSON');
  }
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

/** Whether every number in it is exact as a JavaScript number. @throws LockgateError `input-json` */
function lookThrough(text: string): boolean {
  let depth = 0;
  let digits = 0;
  let isExact = true;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (isDigit) digits += 1;
    // An exponent comes right behind a digit, as no letter of true, false or null does.
    else if ((code | 0x20) === 0x65 && digits > 0) isExact = false;
    else if (code !== 0x2e) digits = 0;
    if (digits > EXACT_DIGITS) isExact = false;
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === 0x5b || code === 0x7b) depth += 1;
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    if (depth > MAX_DEPTH)
      throw new LockgateError('input-json', `the body is nested more than ${MAX_DEPTH} deep, the most that is taken`);
  }
  return isExact;
}

/** The place of the closing quote, or the end of the text. */
function endOfString(text: string, opening: number): number {
  for (let at = opening + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at += 1;
    else if (code === QUOTE) return at;
  }
  return text.length;
}

/** A whole number as a number where that is exact, else as a bigint; any other as a number that is not whole. */
function parseNumber(text: string): number | bigint {
  const whole = toWhole(text);
  // 1.00000000000000000001 would be rounded to a whole number, which nobody wrote.
  if (whole === undefined) return Number.isInteger(Number(text)) ? Number.NaN : Number(text);
  const number = Number(whole);
  return Number.isSafeInteger(number) ? number : whole;
}

function toWhole(text: string): bigint | undefined {
  const [, sign = '', integer = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const shift = Number(exponent) - fraction.length;
  const digits = (integer + fraction).replace(/^0+(?=\d)/, '');
  if (Math.abs(shift) > MAX_EXPONENT + fraction.length || digits.length > MAX_EXPONENT * 2) return undefined;
  if (shift >= 0) return BigInt(`${sign}${digits}${'0'.repeat(shift)}`);
  const kept = digits.padStart(1 - shift, '0');
  if (!/^0*$/.test(kept.slice(shift))) return undefined;
  return BigInt(`${sign}${kept.slice(0, shift)}`);
}
