/**
 * Times and sizes as people read them: how long ago or ahead, a date, a number of bytes. Dates are UTC on all screens,
 * as in the sentences of the gateway, in bills and on the command line, so that times can be compared.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../../proto/clock.js';

const UNITS: readonly (readonly [span: number, name: string])[] = [
  [Days(1), 'd'],
  [Hours(1), 'h'],
  [Minutes(1), 'min'],
  [Seconds(1), 's'],
];

/** `3 min ago`, `in 2 h`, or `now` for less than a second. */
export function ageText(timeMs: number, nowMs: number): string {
  const span = Math.abs(nowMs - timeMs);
  if (span < Seconds(1)) return 'now';
  return timeMs > nowMs ? `in ${spanText(span)}` : `${spanText(span)} ago`;
}

/** `3 min`, in whole units; `0 s` for less than a second. */
export function spanText(span: Milliseconds): string {
  const [unit, name] = UNITS.find(([each]) => span >= each) ?? [Seconds(1), 's'];
  return `${Math.floor(span / unit)} ${name}`;
}

/** Minutes and seconds until a time, such as `1:05`; `0:00` for a past time. */
export function countdownText(timeMs: number, nowMs: number): string {
  const seconds = Math.max(Math.ceil((timeMs - nowMs) / Seconds(1)), 0);
  if (seconds >= Hours(1) / Seconds(1)) return ageText(timeMs, nowMs).replace('in ', '');
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** The date and time to the second, such as `2026-11-20 07:00:01 UTC`. @param date RFC 3339 */
export function timeText(date: string): string {
  return `${new Date(date).toISOString().slice(0, 'YYYY-MM-DDThh:mm:ss'.length).replace('T', ' ')} UTC`;
}

/** The time of day, UTC, such as `07:00:01`. @param date RFC 3339 */
export function timeOfDayText(date: string): string {
  return timeText(date).slice('YYYY-MM-DD '.length, 'YYYY-MM-DD hh:mm:ss'.length);
}

/** Bytes for people, such as `4.1 kB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = bytes === 0 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  const value = bytes / 1000 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}
