/**
 * Reads members of untrusted JSON. A member that is not as expected does not throw: the reader remembers the first
 * error as a sentence that names the member, its value and what was expected, and returns a placeholder. The caller
 * reads all members and checks `error` once at the end. If there is an error, the caller must not use what it has read.
 *
 * In all methods, `parent` is the name of the object that has the member, for the error; empty for the outermost one.
 * An empty `member` says that the value is the `parent` itself.
 */
import { DATE_EXPECTED, parseDate } from './date.js';

/** A JSON object whose members have not been checked. */
export type JsonObject = { readonly [member: string]: unknown };

/** How many characters of a wrong value an error shows. */
const MAX_SHOWN_CHARACTERS = 60;

/** The maximum of the wire's unsigned fields. */
const MAX_UINT32 = 2 ** 32 - 1;

/** See the top of this file. */
export class JsonReader {
  /** The first error; null if there is none. */
  error: string | null = null;

  /** Records the error that a member has a wrong value, without checking the value. */
  reject(value: unknown, parent: string, member: string, expected: string): void {
    const name = parent === '' ? member : member === '' ? parent : `${parent}.${member}`;
    this.error ??= `${name} ${value === undefined ? 'is missing' : `is ${showJson(value)}`}: expected ${expected}`;
  }

  object(value: unknown, parent: string, member: string): JsonObject {
    if (isObject(value)) return value;
    this.reject(value, parent, member, 'an object');
    return {};
  }

  text(value: unknown, parent: string, member: string): string {
    if (typeof value === 'string') return value;
    this.reject(value, parent, member, 'a text');
    return '';
  }

  flag(value: unknown, parent: string, member: string): boolean {
    if (typeof value === 'boolean') return value;
    this.reject(value, parent, member, 'true or false');
    return false;
  }

  /** A finite number. */
  number(value: unknown, parent: string, member: string): number {
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    this.reject(value, parent, member, 'a number');
    return 0;
  }

  integer(value: unknown, parent: string, member: string): number {
    if (typeof value === 'number' && Number.isInteger(value)) return value;
    this.reject(value, parent, member, 'a whole number');
    return 0;
  }

  /** An integer that fits the wire's unsigned fields. */
  count(value: unknown, parent: string, member: string): number {
    if (typeof value === 'number' && value >= 0 && value <= MAX_UINT32 && Number.isInteger(value)) return value;
    this.reject(value, parent, member, `a whole number, 0 to ${MAX_UINT32}`);
    return 0;
  }

  /** An RFC 3339 date, as ms since the epoch. */
  date(value: unknown, parent: string, member: string): number {
    const timeMs = typeof value === 'string' ? parseDate(value) : Number.NaN;
    if (!Number.isNaN(timeMs)) return timeMs;
    this.reject(value, parent, member, DATE_EXPECTED);
    return 0;
  }

  /** One of the given words. */
  word<T extends string>(value: unknown, parent: string, member: string, words: readonly T[]): T {
    for (const word of words) {
      if (value === word) return word;
    }
    this.reject(value, parent, member, words.length === 1 ? `"${words[0]}"` : `one of ${words.join(', ')}`);
    return words[0] as T;
  }
}

/** Whether a JSON value is an object, not an array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as an error shows it, cut short because it may be very long. */
export function showJson(value: unknown): string {
  // An object is not converted to text and then cut, because it may be deep or large.
  if (isObject(value)) return 'an object';
  if (Array.isArray(value)) return 'an array';
  const text = typeof value === 'string' ? JSON.stringify(value.slice(0, MAX_SHOWN_CHARACTERS + 1)) : String(value);
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}
