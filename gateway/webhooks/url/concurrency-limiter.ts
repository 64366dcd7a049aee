/**
 * How many attempts may be under way to one URL at once: few at first, more as the receiver shows that it keeps up,
 * half as many when it doesn't, as TCP does. So a receiver that hangs ties up few sockets, and one that is slow or
 * returns after a failure does not get everything that waits at once. Pure.
 */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import type { AttemptResult } from '../sending/attempt.js';

/** The most. */
export const MOST_AT_ONCE = 16;
/**
 * The least, and the number to start with after a start of the gateway or a change of the URL: two for new events and
 * two for retries, so that one that hangs holds up neither.
 */
export const LEAST_AT_ONCE = 4;
/** A slower answer does not show that the receiver could take more. */
const QUICK: Milliseconds = Seconds(5);

export class ConcurrencyLimiter {
  #size = LEAST_AT_ONCE;

  /** How many may be under way at once now. */
  get size(): number {
    return this.#size;
  }

  /** How many of them may be retries, so that a backlog of those doesn't hold up new events. */
  get forRetries(): number {
    return Math.floor(this.#size / 2);
  }

  /**
   * The result of an attempt, and how many were under way with it. A 400, say, or a success that is slow, changes
   * nothing; neither does a success while fewer were under way than may be.
   */
  note({ status, error, durationMs }: AttemptResult, underWay: number): void {
    if (error === null && durationMs <= QUICK && underWay >= this.#size)
      this.#size = Math.min(this.#size + 1, MOST_AT_ONCE);
    else if (isOverwhelmed(status)) this.#size = Math.max(Math.floor(this.#size / 2), LEAST_AT_ONCE);
  }
}

/** There was no answer, a server error, or a 429. */
function isOverwhelmed(status: number | null): boolean {
  return status === null || status >= 500 || status === 429;
}
