/** What operators name in paths and behind the question mark, read and checked. */
import { DATE_EXPECTED, parseDate } from '../../../proto/date.js';
import { LockgateError } from '../../../proto/errors.js';
import type { Query } from './routes.js';

/** A date as ms since the epoch; undefined where none is given. @throws LockgateError `input-date` */
export function readDate(what: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const timeMs = parseDate(text);
  if (Number.isNaN(timeMs))
    throw new LockgateError('input-date', `${what} is ${JSON.stringify(text)}: expected ${DATE_EXPECTED}`);
  return timeMs;
}

/** An id in a path. One that can't be one names nothing: 0. */
export function readId(text: string | undefined): number {
  return /^\d{1,15}$/.test(text ?? '') ? Number(text) : 0;
}

/** How many at the most, as the row's schema has checked; `usual` where nobody says. */
export function limitOf(query: Query, usual: number): number {
  return Number(textOf(query, 'limit') ?? usual);
}

/** One of these words, as the row's schema has checked; undefined where it is left out. */
export function wordOf<Word extends string>(query: Query, name: string, words: readonly Word[]): Word | undefined {
  const text = textOf(query, name);
  return words.find((each) => each === text);
}

/** A member of the query that is given once; the first of several. */
export function textOf(query: Query, name: string): string | undefined {
  const value = query[name];
  return typeof value === 'object' ? value[0] : value;
}
