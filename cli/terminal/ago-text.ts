/** How long ago something was, as people say it: short, and exact enough to tell a minute from a day. */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';

const UNITS: readonly (readonly [from: Milliseconds, unit: Milliseconds, name: string])[] = [
  [Days(2), Days(1), 'd'],
  [Hours(2), Hours(1), 'h'],
  [Minutes(2), Minutes(1), 'min'],
  [Seconds(1), Seconds(1), 's'],
];

/** As `3 min ago`; `now` for less than a second, and for what another machine's clock puts ahead. */
export function agoText(date: string, nowMs: number): string {
  const span = spanText(nowMs - Date.parse(date));
  return span === undefined ? 'now' : `${span} ago`;
}

/** As `in 3 min` for what is still to come, and {@link agoText} for what has been. */
export function whenText(date: string, nowMs: number): string {
  const span = spanText(Date.parse(date) - nowMs);
  return span === undefined ? agoText(date, nowMs) : `in ${span}`;
}

/** Undefined for less than a second. */
function spanText(span: Milliseconds): string | undefined {
  const [, unit = 1, name] = UNITS.find(([from]) => span >= from) ?? [];
  return name === undefined ? undefined : `${Math.floor(span / unit)} ${name}`;
}
