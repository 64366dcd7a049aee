/** Reads values of paths and query strings, and the expiry in bodies, of the operators' interface. */
import { DATE_EXPECTED, parseDate } from '../../../proto/date.js';
import { LockgateError } from '../../../proto/errors.js';
import { isDatable } from '../../../proto/wire/ping-json.js';
import type { Query } from './routes.js';

/** Reads a date, as ms since the epoch; undefined if absent. @throws LockgateError `input-date` */
export function readDate(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const timeMs = parseDate(text);
  if (Number.isNaN(timeMs))
    throw new LockgateError('input-date', `${name} is ${JSON.stringify(text)}: expected ${DATE_EXPECTED}`);
  return timeMs;
}

/** The member `expires_at` of a body as ms since the epoch. @throws LockgateError `input-expiry` */
export function readExpiry(text: string): number {
  const timeMs = parseDate(text);
  if (!Number.isNaN(timeMs) && isDatable(timeMs)) return timeMs;
  throw new LockgateError('input-expiry', `expires_at is ${JSON.stringify(text)}: expected ${DATE_EXPECTED}`);
}

/** Reads an id in a path, of at most 15 digits: all safe integers. 0, which is no id, if the text is malformed. */
export function readId(text: string | undefined): number {
  return /^\d{1,15}$/.test(text ?? '') ? Number(text) : 0;
}

/** The limit of a list, validated by the route's schema. */
export function limitOf(query: Query, defaultLimit: number): number {
  return Number(textOf(query, 'limit') ?? defaultLimit);
}

/** One of these words, validated by the route's schema; undefined if absent. */
export function wordOf<Word extends string>(query: Query, name: string, words: readonly Word[]): Word | undefined {
  const text = textOf(query, name);
  return words.find((word) => word === text);
}

/** A single member of the query; the first if it is repeated. */
export function textOf(query: Query, name: string): string | undefined {
  const value = query[name];
  return typeof value === 'object' ? value[0] : value;
}
