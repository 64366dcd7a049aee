/** The moment that somebody asks about, as they typed or copied it. By the run's clock, as all that locks do is. */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { parseDate } from '../../proto/date.js';
import { LockgateError } from '../../proto/errors.js';
import { isDatable, toDate } from '../../proto/wire/ping-json.js';

const SPAN = /^(\d{1,6}) ?(s|min|m|h|d|w)(?: ago)?$/;
const UNITS: Readonly<Record<string, (count: number) => Milliseconds>> = {
  s: Seconds,
  m: Minutes,
  min: Minutes,
  h: Hours,
  d: Days,
  w: (count) => Days(7 * count),
};
const DAY = /^\d{4}-\d\d-\d\d$/;
const TIME_OF_DAY = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;

/**
 * A date of RFC 3339, a day (its beginning, UTC), a time of the day as `tail` shows it (UTC, the last one that has
 * been), or a span back, such as `2h` or `2h ago`.
 *
 * @returns ms since the epoch
 * @throws LockgateError `input-at` for anything else, and for what has not been yet
 */
export function readMoment(text: string, nowMs: number): number {
  const given = text.trim();
  const timeMs = spanBack(given, nowMs) ?? timeOfDay(given, nowMs) ?? dateOf(given);
  if (Number.isNaN(timeMs) || !isDatable(timeMs)) {
    const expected = 'a date such as 2026-11-21T10:00:00Z, a time of day such as 10:00, or a span back such as 2h';
    throw new LockgateError('input-at', `at is ${JSON.stringify(given.slice(0, 60))}: expected ${expected}`);
  }
  if (timeMs <= nowMs) return timeMs;
  throw new LockgateError('input-at', `at is ${toDate(timeMs)}, which has not been yet: it is ${toDate(nowMs)}`);
}

function spanBack(text: string, nowMs: number): number | undefined {
  const [, count, unit = ''] = SPAN.exec(text) ?? [];
  const span = count === undefined ? undefined : UNITS[unit]?.(Number(count));
  return span === undefined ? undefined : nowMs - span;
}

function timeOfDay(text: string, nowMs: number): number | undefined {
  const [, hours, minutes, seconds = '0'] = TIME_OF_DAY.exec(text) ?? [];
  if (hours === undefined) return undefined;
  const ofDay = Hours(Number(hours)) + Minutes(Number(minutes)) + Seconds(Number(seconds));
  const today = nowMs - (nowMs % Days(1)) + ofDay;
  return today <= nowMs ? today : today - Days(1);
}

/** People leave the seconds out: `2026-11-21T10:00Z`. */
function dateOf(text: string): number {
  if (DAY.test(text)) return parseDate(`${text}T00:00:00Z`);
  return parseDate(text.replace(/^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(?=$|[Zz+-])/, '$1T$2:00'));
}
