/**
 * Durations, distances and times as people type them: `90 s`, `10 min`, `1 h 30 min`, `2km`, `08:10`, `day 2 08:10`,
 * `+90 s`. Pure. Each function returns undefined for invalid text; the caller reports where the text is and what was
 * expected.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';

const UNITS_MS: Readonly<Record<string, Milliseconds>> = {
  ms: 1,
  s: Seconds(1),
  sec: Seconds(1),
  second: Seconds(1),
  seconds: Seconds(1),
  m: Minutes(1),
  min: Minutes(1),
  minute: Minutes(1),
  minutes: Minutes(1),
  h: Hours(1),
  hour: Hours(1),
  hours: Hours(1),
  d: Days(1),
  day: Days(1),
  days: Days(1),
};

/** The longest duration that is accepted: ten years. */
const MAX_SPAN_MS: Milliseconds = Days(3660);
/** The longest distance that is accepted. */
const MAX_DISTANCE_METERS = 200_000;
/** The longest text that is examined, so that a regular expression never runs on a long input. */
const MAX_TEXT_CHARACTERS = 60;

/** A duration in ms, from 0 to ten years; undefined for anything else. */
export function parseSpan(text: string): Milliseconds | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_TEXT_CHARACTERS || !/^(\d+(\.\d+)?\s*[a-z]+\s*)+$/.test(trimmed)) return undefined;
  let span = 0;
  for (const [, count, unit = ''] of trimmed.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g)) {
    const unitMs = Object.hasOwn(UNITS_MS, unit) ? UNITS_MS[unit] : undefined;
    if (unitMs === undefined) return undefined;
    span += Number(count) * unitMs;
  }
  return span <= MAX_SPAN_MS ? Math.round(span) : undefined;
}

/** A distance in metres, above 0 and at most 200 km; undefined for anything else. */
export function parseMeters(text: string): number | undefined {
  const match = /^(\d{1,6}(?:\.\d{1,6})?)\s*(km|m)$/.exec(text.trim());
  if (match === null) return undefined;
  const meters = Number(match[1]) * (match[2] === 'km' ? 1000 : 1);
  return meters > 0 && meters <= MAX_DISTANCE_METERS ? meters : undefined;
}

/** A time of day as ms since midnight, `08:10` or `08:10:30`; undefined for anything else, such as 25:10. */
export function parseTimeOfDay(text: string): Milliseconds | undefined {
  const match = /^(\d\d):(\d\d)(?::(\d\d))?$/.exec(text.trim());
  if (match === null) return undefined;
  const [hours, minutes, seconds] = [Number(match[1]), Number(match[2]), Number(match[3] ?? '0')];
  if (hours > 23 || minutes > 59 || seconds > 59) return undefined;
  return Hours(hours) + Minutes(minutes) + Seconds(seconds);
}

/**
 * A moment of a run that starts at `startMs`, as ms since the epoch: a time of day in UTC (by default of the first day;
 * `day 1` is the first day), or a duration after the start. The moment may be before the start. Undefined for invalid
 * text.
 */
export function parseMoment(text: string, startMs: number): number | undefined {
  const trimmed = text.trim();
  if (trimmed.length > MAX_TEXT_CHARACTERS) return undefined;
  if (trimmed.startsWith('+')) {
    const span = parseSpan(trimmed.slice(1));
    return span === undefined ? undefined : startMs + span;
  }
  const match = /^(?:day\s+([1-9]\d{0,3})\s+)?([\d:]+)$/.exec(trimmed);
  const timeOfDay = parseTimeOfDay(match?.[2] ?? '');
  if (match === null || timeOfDay === undefined) return undefined;
  const midnight = Math.floor(startMs / Days(1)) * Days(1);
  if (match[1] !== undefined) return midnight + Days(Number(match[1]) - 1) + timeOfDay;
  return midnight + timeOfDay;
}
