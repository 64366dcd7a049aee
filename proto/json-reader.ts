/**
 * Reads members out of JSON that a stranger wrote. The first thing that is wrong is kept as a sentence that names the
 * member, what it is and what was expected; from there on reading goes on with stand-ins, and its outcome is worthless.
 * So code that reads says what it wants, line by line, and asks once at the end.
 */
import { DATE_EXPECTED, parseDate } from './date.js';

/** A JSON object of which nothing is known yet. */
export type JsonObject = { readonly [member: string]: unknown };

/** The most characters of a wrong value that a sentence shows. */
const SHOWN_CHARACTERS = 60;

/** Every 32-bit field of the wire. */
const UINT32_MOST = 2 ** 32 - 1;

export class JsonReader {
  /** What was wrong first; null where nothing was. */
  error: string | null = null;

  /** Keeps that the member of `of` is not what was expected. The name is put together here, where it is needed. */
  expect(value: unknown, of: string, member: string, expected: string): void {
    const name = of === '' ? member : member === '' ? of : `${of}.${member}`;
    this.error ??= `${name} ${value === undefined ? 'is missing' : `is ${showJson(value)}`}: expected ${expected}`;
  }

  object(value: unknown, of: string, member: string): JsonObject {
    if (isObject(value)) return value;
    this.expect(value, of, member, 'an object');
    return {};
  }

  text(value: unknown, of: string, member: string): string {
    if (typeof value === 'string') return value;
    this.expect(value, of, member, 'a text');
    return '';
  }

  flag(value: unknown, of: string, member: string): boolean {
    if (typeof value === 'boolean') return value;
    this.expect(value, of, member, 'true or false');
    return false;
  }

  /** A number that JSON can carry, so a finite one. */
  number(value: unknown, of: string, member: string): number {
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    this.expect(value, of, member, 'a number');
    return 0;
  }

  integer(value: unknown, of: string, member: string): number {
    if (typeof value === 'number' && Number.isInteger(value)) return value;
    this.expect(value, of, member, 'a whole number');
    return 0;
  }

  /** A whole number that fits the wire's unsigned fields. */
  count(value: unknown, of: string, member: string): number {
    if (typeof value === 'number' && value >= 0 && value <= UINT32_MOST && Number.isInteger(value)) return value;
    this.expect(value, of, member, `a whole number, 0 to ${UINT32_MOST}`);
    return 0;
  }

  /** A date of RFC 3339, as ms since the epoch. */
  date(value: unknown, of: string, member: string): number {
    const timeMs = typeof value === 'string' ? parseDate(value) : Number.NaN;
    if (!Number.isNaN(timeMs)) return timeMs;
    this.expect(value, of, member, DATE_EXPECTED);
    return 0;
  }

  /** One of some words. */
  word<T extends string>(value: unknown, of: string, member: string, words: readonly T[]): T {
    for (const word of words) {
      if (value === word) return word;
    }
    this.expect(value, of, member, words.length === 1 ? `"${words[0]}"` : `one of ${words.join(', ')}`);
    return words[0] as T;
  }
}

/** Whether a JSON value is an object, not an array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as a sentence shows it: cut short, so that a stranger's megabyte is not our error message. */
export function showJson(value: unknown): string {
  // What is an object is not written out to be cut: it may be deep or large.
  if (isObject(value)) return 'an object';
  if (Array.isArray(value)) return 'an array';
  const text = typeof value === 'string' ? JSON.stringify(value.slice(0, SHOWN_CHARACTERS + 1)) : String(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
