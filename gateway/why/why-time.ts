/**
 * Parses the time of a "why" question, as an operator types or pastes it. The time is by the run's clock (wall-clock
 * time, except in a sped-up simulation).
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { parseDate } from '../../proto/date.js';
import { LockgateError } from '../../proto/errors.js';
import { formatDate, isDatable } from '../../proto/wire/ping-json.js';

const SPAN_FORM = /^(\d{1,6}) ?(s|min|m|h|d|w)(?: ago)?$/;
const UNITS: Readonly<Record<string, (count: number) => Milliseconds>> = {
  s: Seconds,
  m: Minutes,
  min: Minutes,
  h: Hours,
  d: Days,
  w: (count) => Days(7 * count),
};
/** How much of a text that is not understood the error quotes. */
const MAX_QUOTED_CHARS = 60;
const DAY_FORM = /^\d{4}-\d\d-\d\d$/;
const TIME_OF_DAY_FORM = /^([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;

/**
 * Reads an RFC 3339 date, a day (its start, UTC), a time of day as `tail` shows it (UTC, the latest past one), or a
 * time span before now, such as `2h` or `2h ago`.
 *
 * @returns ms since the epoch
 * @throws LockgateError `input-at` for anything else, and for a time in the future
 */
export function readMoment(text: string, nowMs: number): number {
  const given = text.trim();
  const timeMs = spanBack(given, nowMs) ?? timeOfDay(given, nowMs) ?? dateOf(given);
  if (Number.isNaN(timeMs) || !isDatable(timeMs)) {
    const expected =
      'a date such as 2026-11-21T10:00:00Z, a time of day such as 10:00, or a span before now such as 2h';
    throw new LockgateError(
      'input-at',
      `at is ${JSON.stringify(given.slice(0, MAX_QUOTED_CHARS))}: expected ${expected}`,
    );
  }
  if (timeMs <= nowMs) return timeMs;
  throw new LockgateError(
    'input-at',
    `at is ${formatDate(timeMs)}, which is in the future: it is ${formatDate(nowMs)} now`,
  );
}

function spanBack(text: string, nowMs: number): number | undefined {
  const [, count, unit = ''] = SPAN_FORM.exec(text) ?? [];
  const span = count === undefined ? undefined : UNITS[unit]?.(Number(count));
  return span === undefined ? undefined : nowMs - span;
}

function timeOfDay(text: string, nowMs: number): number | undefined {
  const [, hours, minutes, seconds = '0'] = TIME_OF_DAY_FORM.exec(text) ?? [];
  if (hours === undefined) return undefined;
  const sinceMidnight = Hours(Number(hours)) + Minutes(Number(minutes)) + Seconds(Number(seconds));
  const todayMs = nowMs - (nowMs % Days(1)) + sinceMidnight;
  return todayMs <= nowMs ? todayMs : todayMs - Days(1);
}

/** Also accepts a date without seconds: `2026-11-21T10:00Z`. */
function dateOf(text: string): number {
  if (DAY_FORM.test(text)) return parseDate(`${text}T00:00:00Z`);
  return parseDate(text.replace(/^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(?=$|[Zz+-])/, '$1T$2:00'));
}
