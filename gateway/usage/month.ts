/** Calendar months in UTC, for usage counts and monthly bills, called statements (interfaces.md §5). Pure. */
import { ok, problem, type Result } from '../../proto/errors.js';

declare const monthBrand: unique symbol;

/** A month as `2026-11`. The texts sort in the order of the months. Only the functions of this file make them. */
export type Month = string & { readonly [monthBrand]: true };

const SPELLING = /^(\d{4})-(0[1-9]|1[0-2])$/;

/** The month of a moment, ms since the epoch. */
export function monthOf(timeMs: number): Month {
  return new Date(timeMs).toISOString().slice(0, 7) as Month;
}

/**
 * Reads a month of the years 1970 to 9998: the month after it must have a year of four digits too. The error's sentence
 * quotes at most 20 characters of what was given.
 */
export function parseMonth(text: string): Result<Month> {
  const year = Number(SPELLING.exec(text)?.[1]);
  if (year >= 1970 && year <= 9998) return ok(text as Month);
  return problem('input-month', `${JSON.stringify(text.slice(0, 20))} is no month: expected one such as 2026-11`);
}

/** The first millisecond of the month, since the epoch. */
export function monthStartMs(month: Month): number {
  return Date.parse(`${month}-01T00:00:00.000Z`);
}

/** The first millisecond after the month, since the epoch. */
export function monthEndMs(month: Month): number {
  return monthStartMs(nextMonth(month));
}

/** The month after. */
export function nextMonth(month: Month): Month {
  return shifted(month, 1);
}

/** The month before. */
export function previousMonth(month: Month): Month {
  return shifted(month, -1);
}

/** Every month from one to another, both included; none if the first comes after the last. */
export function monthsBetween(first: Month, last: Month): Month[] {
  const months: Month[] = [];
  for (let month = first; month <= last; month = nextMonth(month)) months.push(month);
  return months;
}

function shifted(month: Month, by: number): Month {
  const start = new Date(monthStartMs(month));
  return monthOf(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + by));
}
