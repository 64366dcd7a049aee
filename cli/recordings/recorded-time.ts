/** Parses the times that other programs write into their logs. */
import { Hours, Minutes, Seconds } from '../../proto/clock.js';
import { parseDate } from '../../proto/date.js';
import { isDatable } from '../../proto/wire/ping-json.js';

/** Such as `1795154441` or `1795154441.120`. */
const UNIX_SECONDS = /^(\d{1,11})(?:[.,](\d{1,9}))?$/;
/** Such as `1795154441120`. */
const UNIX_MILLISECONDS = /^\d{12,14}$/;
/** Such as `2026-11-20T06:00:00+0100` or `2026-11-20 06:00:00.120`. */
const ISO = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))? ?([Zz]|[+-]\d\d(?::?\d\d)?)?$/;
/** Such as `+01:00`, `-0530` or `+01`. */
const OFFSET = /^([+-])(\d\d)(?::?(\d\d))?$/;

/** What an error says was expected. */
export const TIME_EXPECTED = 'a time such as 2026-11-20T06:00:00+0100 or 1795154441.120';

/**
 * Milliseconds since the epoch of an ISO 8601 date or of a Unix time (seconds, with a fraction or without; milliseconds
 * if it has 12 digits or more). NaN for any other text, and for a time outside the years 1970–9999.
 *
 * @param utcOffsetMs the UTC offset of a date without one
 */
export function parseRecordedTime(text: string, utcOffsetMs: number): number {
  const timeMs = parseUnix(text) ?? parseIso(text, utcOffsetMs);
  return isDatable(timeMs) ? timeMs : Number.NaN;
}

function parseUnix(text: string): number | undefined {
  if (UNIX_MILLISECONDS.test(text)) return Number(text);
  const match = UNIX_SECONDS.exec(text);
  if (match === null) return undefined;
  return Seconds(Number(match[1])) + fractionMs(match[2]);
}

function fractionMs(digits = ''): number {
  return Number(digits.slice(0, 3).padEnd(3, '0'));
}

function parseIso(text: string, utcOffsetMs: number): number {
  const match = ISO.exec(text);
  if (match === null) return Number.NaN;
  const localMs = parseDate(`${match[1]}T${match[2]}Z`) + fractionMs(match[3]);
  const zone = match[4];
  if (zone === undefined) return localMs - utcOffsetMs;
  return zone.toUpperCase() === 'Z' ? localMs : localMs - (parseUtcOffset(zone) ?? Number.NaN);
}

/** A UTC offset such as `+01:00`, `-0530` or `+01`, in ms; undefined for any other text. `Z` is no offset. */
export function parseUtcOffset(text: string): number | undefined {
  const match = OFFSET.exec(text);
  if (match === null) return undefined;
  const [hours, minutes] = [Number(match[2]), Number(match[3] ?? '0')];
  if (hours > 23 || minutes > 59) return undefined;
  return (match[1] === '+' ? 1 : -1) * (Hours(hours) + Minutes(minutes));
}
