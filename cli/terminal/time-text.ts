/** Parses times and spans that people type (`30d`, `1h`, a date), and formats times for people (`3 min ago`). */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { parseDate } from '../../proto/date.js';
import { LockgateError } from '../../proto/errors.js';
import { formatDate } from '../../proto/wire/ping-json.js';

const SPAN_UNITS: Readonly<Record<string, (count: number) => Milliseconds>> = {
  s: Seconds,
  m: Minutes,
  h: Hours,
  d: Days,
  w: (count) => Days(7 * count),
};

/** A span: a number and one letter of {@link SPAN_UNITS}. */
const SPAN = /^(\d{1,6})([smhdw])$/;
/** A date without a time. */
const DAY = /^\d{4}-\d\d-\d\d$/;

/** Parses a span such as `90s`, `30m`, `1h`, `30d`, `2w`. @throws LockgateError `input-span`, naming the flag */
export function readSpan(flag: string, text: string): Milliseconds {
  const span = spanOf(text);
  if (span !== undefined) return span;
  throw new LockgateError('input-span', `${flag} is ${JSON.stringify(text)}: expected a span such as 90s, 1h or 30d`);
}

/**
 * Parses a future time: a span from the present, or a date. A day without a time means its start in UTC.
 *
 * @param now the present, ms since the epoch; called for a span only
 * @returns RFC 3339
 * @throws LockgateError `input-expiry`, naming the flag
 */
export async function readFutureTime(flag: string, text: string, now: () => Promise<number>): Promise<string> {
  const span = spanOf(text);
  const timeMs = span === undefined ? parseDate(DAY.test(text) ? `${text}T00:00:00Z` : text) : (await now()) + span;
  if (!Number.isNaN(timeMs)) return formatDate(timeMs);
  const expected = 'a span such as 30d, or a date such as 2026-12-24 or 2026-12-24T18:00:00Z';
  throw new LockgateError('input-expiry', `${flag} is ${JSON.stringify(text)}: expected ${expected}`);
}

/**
 * Parses a past time: a span back from the present, or a date. A day without a time means its start in UTC.
 *
 * @param now the present, ms since the epoch; called for a span only
 * @returns RFC 3339
 * @throws LockgateError `input-since`, naming the flag
 */
export async function readPastTime(flag: string, text: string, now: () => Promise<number>): Promise<string> {
  const span = spanOf(text);
  const timeMs = span === undefined ? parseDate(DAY.test(text) ? `${text}T00:00:00Z` : text) : (await now()) - span;
  if (!Number.isNaN(timeMs)) return formatDate(timeMs);
  const expected = 'a span such as 24h, or a date such as 2026-11-20 or 2026-11-20T18:00:00Z';
  throw new LockgateError('input-since', `${flag} is ${JSON.stringify(text)}: expected ${expected}`);
}

/** Parses a span; undefined if the text is not a span. */
function spanOf(text: string): Milliseconds | undefined {
  const [, count, unit = ''] = SPAN.exec(text) ?? [];
  return count === undefined ? undefined : SPAN_UNITS[unit]?.(Number(count));
}

/** A span of at least `from` is displayed in the unit; the first entry that fits counts. */
const DISPLAY_UNITS: readonly (readonly [from: Milliseconds, unit: Milliseconds, name: string])[] = [
  [Days(2), Days(1), 'd'],
  [Hours(2), Hours(1), 'h'],
  [Minutes(2), Minutes(1), 'min'],
  [Seconds(1), Seconds(1), 's'],
];

/** `3 min ago`, for example; `now` for less than a second ago and for future times. */
export function agoText(date: string, nowMs: number): string {
  const span = spanText(nowMs - Date.parse(date));
  return span === undefined ? 'now' : `${span} ago`;
}

/** {@link agoText} of a time so many seconds ago. */
export function secondsAgoText(seconds: number, nowMs: number): string {
  return agoText(formatDate(nowMs - Math.round(Seconds(seconds))), nowMs);
}

/** `in 3 min`, for example, for a future time; {@link agoText} for a past time. */
export function whenText(date: string, nowMs: number): string {
  const span = spanText(Date.parse(date) - nowMs);
  return span === undefined ? agoText(date, nowMs) : `in ${span}`;
}

/** `3 min`, for example; undefined for less than a second. */
function spanText(span: Milliseconds): string | undefined {
  const [, unit = 1, name] = DISPLAY_UNITS.find(([from]) => span >= from) ?? [];
  return name === undefined ? undefined : `${Math.floor(span / unit)} ${name}`;
}
