/**
 * When a delivery is tried again, and when it is given up (interfaces.md §3). Pure: chance and time are arguments.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';

/** The waits after the first, second, third … attempt that failed. After the last of them a delivery is dead. */
export const RETRY_DELAYS: readonly Milliseconds[] = [
  Seconds(5),
  Minutes(5),
  Minutes(30),
  Hours(2),
  Hours(5),
  Hours(10),
  Hours(10),
];

/**
 * Each wait is longer or shorter by up to this share, so that deliveries that failed together don't return together.
 */
const JITTER = 0.1;
/** A receiver may ask for a longer wait than the table has, but not for a longer one than this. */
export const LONGEST_RETRY_AFTER: Milliseconds = Hours(24);

/**
 * The wait before the next attempt.
 *
 * @param attempts how many were made, at least 1
 * @param random a number in [0, 1)
 * @param retryAfter what a 429 or 503 asked for; the longer of it and our own wait counts
 * @returns undefined where the delivery is dead
 */
export function retryDelay(attempts: number, random: number, retryAfter?: Milliseconds): Milliseconds | undefined {
  const delay = RETRY_DELAYS[attempts - 1];
  if (delay === undefined) return undefined;
  const jittered = Math.round(delay * (1 - JITTER + 2 * JITTER * random));
  return Math.max(jittered, Math.min(retryAfter ?? 0, LONGEST_RETRY_AFTER));
}

/** The longest that a delivery may wait, by our own schedule, after so many attempts; 0 where none was made. */
export function longestWait(attempts: number): Milliseconds {
  return Math.round((RETRY_DELAYS[attempts - 1] ?? 0) * (1 + JITTER));
}

/** RFC 9110 §5.6.7, the form that senders must use. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** The time of an HTTP date, ms since the epoch; undefined for anything else. */
export function parseHttpDate(text: string | undefined): number | undefined {
  // Date.parse alone accepts much that is no date, even `-5` as a year.
  const date = text !== undefined && HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : date;
}

/**
 * What a Retry-After header asks for, in ms: seconds or an HTTP date; undefined for anything else. `nowMs` is when the
 * answer was sent, by the receiver's clock where that is known: then it does not matter whose clock is wrong.
 */
export function parseRetryAfter(header: string | undefined, nowMs: number): Milliseconds | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Seconds(Number(header));
  const date = parseHttpDate(header);
  return date === undefined ? undefined : Math.max(date - nowMs, 0);
}
