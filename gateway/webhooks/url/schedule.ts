/**
 * The retry schedule: when a failed delivery is tried again, and when it is given up (interfaces.md §3). Pure: random
 * numbers and times are arguments.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';

/**
 * The waits after the first, second, third … failed attempt. A delivery whose attempt after the last wait fails is
 * dead.
 */
export const RETRY_DELAYS: readonly Milliseconds[] = [
  Seconds(5),
  Minutes(5),
  Minutes(30),
  Hours(2),
  Hours(5),
  Hours(10),
  Hours(10),
];

/** Each wait varies by up to this share, so that deliveries that failed together are not retried together. */
const JITTER = 0.1;
/** The maximum wait that a receiver may ask for. It is longer than the waits of the schedule. */
export const MAX_RETRY_AFTER: Milliseconds = Hours(24);

/**
 * The wait before the next attempt.
 *
 * @param attempts number of attempts made, at least 1
 * @param random a random number in [0, 1)
 * @param retryAfter the wait that a 429 or 503 asked for; it counts if it is longer than the schedule's
 * @returns undefined if the delivery is dead
 */
export function retryDelay(attempts: number, random: number, retryAfter?: Milliseconds): Milliseconds | undefined {
  const delay = RETRY_DELAYS[attempts - 1];
  if (delay === undefined) return undefined;
  const jittered = Math.round(delay * (1 - JITTER + 2 * JITTER * random));
  return Math.max(jittered, Math.min(retryAfter ?? 0, MAX_RETRY_AFTER));
}

/** The longest wait of the schedule, jitter included, after this number of attempts; 0 before the first attempt. */
export function maxRetryDelay(attempts: number): Milliseconds {
  return Math.round((RETRY_DELAYS[attempts - 1] ?? 0) * (1 + JITTER));
}

/** The form of HTTP dates that senders must use (RFC 9110 §5.6.7). */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** The time of an HTTP date, ms since the epoch; undefined for anything else. */
export function parseHttpDate(text: string | undefined): number | undefined {
  // Date.parse accepts much that is not a date, such as `-5` as a year.
  const date = text !== undefined && HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : date;
}

/**
 * The wait that a Retry-After header asks for; undefined if the header is neither seconds nor an HTTP date. `nowMs` is
 * when the answer was sent, by the receiver's clock if known: then a wrong clock on either side does no harm.
 */
export function parseRetryAfter(header: string | undefined, nowMs: number): Milliseconds | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Seconds(Number(header));
  const date = parseHttpDate(header);
  return date === undefined ? undefined : Math.max(date - nowMs, 0);
}
