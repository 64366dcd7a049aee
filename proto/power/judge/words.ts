/** How the sentences of findings write times, spans and numbers. Nothing here throws, whatever the value. */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../clock.js';
import { isDatable, toDate } from '../../wire/ping-json.js';

/** RFC 3339 where the time can be a date, else the bare number. */
export function describeTime(timeMs: number): string {
  return isDatable(timeMs) ? toDate(timeMs) : `${timeMs} ms since 1970`;
}

/** A span in two units, in hours up to two days: `25 h 1 min`, `4 d 3 h`, `31 s`, `200 ms`. */
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
  great: Milliseconds,
  greatUnit: string,
  small: Milliseconds,
  smallUnit: string,
): string {
  const rest = Math.floor((size % great) / small);
  return `${Math.floor(size / great)} ${greatUnit}${rest === 0 ? '' : ` ${rest} ${smallUnit}`}`;
}
