/**
 * How many attempts may be under way at once to one URL: few at first, more as the receiver shows that it keeps up, and
 * half as many when it doesn't, as TCP does with what it sends. So a receiver that hangs holds little of us, and one
 * that is slow or comes back after a failure isn't met by all that waits at once. Pure.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { AttemptResult } from './sending/attempt.js';

/** The most: a receiver holds no more of us than this. */
export const MOST_AT_ONCE = 16;
/**
 * What a URL begins with, after a start of the gateway or a change of the URL, and the least: two for what is new and
 * two for retries, so that one that hangs holds up neither.
 */
export const LEAST_AT_ONCE = 4;
/** An answer that takes longer shows nobody that more would be welcome. */
const QUICK: Milliseconds = Seconds(5);

export class ConcurrencyLimiter {
  #size = LEAST_AT_ONCE;

  /** How many may be under way at once now. */
  get size(): number {
    return this.#size;
  }

  /** How many of them retries may take, so that a pile of old ones doesn't hold up what is new. */
  get forRetries(): number {
    return Math.floor(this.#size / 2);
  }

  /**
   * What came of an attempt, and how many were under way with it. An answer in between, a 400 say, or one that is good
   * and slow, changes nothing; and one where more could have been under way doesn't show that still more would do.
   */
  note({ status, error, durationMs }: AttemptResult, underWay: number): void {
    if (error === null && durationMs <= QUICK && underWay >= this.#size)
      this.#size = Math.min(this.#size + 1, MOST_AT_ONCE);
    else if (isOverwhelmed(status)) this.#size = Math.max(Math.floor(this.#size / 2), LEAST_AT_ONCE);
  }
}

/** No answer, the receiver's own fault, or its word that it is too much. */
function isOverwhelmed(status: number | null): boolean {
  return status === null || status >= 500 || status === 429;
}
