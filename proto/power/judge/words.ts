/**
 * Formats times and time spans for the sentences of findings. Pure. These functions never throw, whatever the value.
 */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../clock.js';
import { formatDate, isDatable } from '../../wire/ping-json.js';

/** A time as an RFC 3339 date, or as a number of milliseconds if it is outside the years 1970–9999. */
export function describeTime(timeMs: number): string {
  return isDatable(timeMs) ? formatDate(timeMs) : `${timeMs} ms since 1970`;
}

/** A time span in at most two units: `200 ms`, `31 s`, `25 h 1 min`, `4 d 3 h`. Up to two days it is given in hours. */
export function describeSpan(span: Milliseconds): string {
  const size = Math.abs(span);
  if (size < Seconds(1)) return `${Math.round(span)} ms`;
  if (size < Minutes(1)) return `${Math.floor(size / Seconds(1))} s`;
  if (size < Hours(1)) return twoUnits(size, Minutes(1), 'min', Seconds(1), 's');
  if (size < Days(2)) return twoUnits(size, Hours(1), 'h', Minutes(1), 'min');
  return twoUnits(size, Days(1), 'd', Hours(1), 'h');
}

function twoUnits(
  size: number,
  large: Milliseconds,
  largeUnit: string,
  small: Milliseconds,
  smallUnit: string,
): string {
  const remainder = Math.floor((size % large) / small);
  return `${Math.floor(size / large)} ${largeUnit}${remainder === 0 ? '' : ` ${remainder} ${smallUnit}`}`;
}
