/** How long ago something was, as people say it: short, and exact enough to tell a minute from a day. */
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../proto/clock.js';

const UNITS: readonly (readonly [from: Milliseconds, unit: Milliseconds, name: string])[] = [
  [Days(2), Days(1), 'd'],
  [Hours(2), Hours(1), 'h'],
  [Minutes(2), Minutes(1), 'min'],
  [Seconds(1), Seconds(1), 's'],
];

/** As `3 min ago`; `now` for less than a second, and for what another machine's clock puts ahead. */
export function agoText(date: string, nowMs: number): string {
  const span = nowMs - Date.parse(date);
  const [, unit = 1, name] = UNITS.find(([from]) => span >= from) ?? [];
  return name === undefined ? 'now' : `${Math.floor(span / unit)} ${name} ago`;
}
