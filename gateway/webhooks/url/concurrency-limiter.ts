/**
 * Limits how many attempts at one URL run at once. The limit starts low, grows while the receiver keeps up, and halves
 * when it does not, like TCP's congestion window. So a receiver that hangs occupies few sockets, and a receiver that is
 * slow or returns after a failure does not get its backlog all at once. Does no I/O.
 */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import type { AttemptResult } from '../sending/attempt.js';

/** The highest limit. */
export const MAX_CONCURRENT_ATTEMPTS = 16;
/**
 * The lowest limit, and the first one after a start of the gateway or a change of the URL: two attempts for new events
 * and two for retries, so that one hanging attempt blocks neither.
 */
export const MIN_CONCURRENT_ATTEMPTS = 4;
/** A success slower than this does not raise the limit. */
const MAX_GROWTH_DURATION: Milliseconds = Seconds(5);

export class ConcurrencyLimiter {
  #limit = MIN_CONCURRENT_ATTEMPTS;

  /** How many attempts may run at once now. */
  get limit(): number {
    return this.#limit;
  }

  /** How many of these attempts may be retries, so that a backlog of retries does not block new events. */
  get retryLimit(): number {
    return Math.floor(this.#limit / 2);
  }

  /**
   * Adjusts the limit to the result of an attempt. `underWay` counts the attempts that ran at its end, itself included.
   * The limit stays after a 4xx such as 400, after a slow success, and after a success below the limit.
   */
  note({ status, error, durationMs }: AttemptResult, underWay: number): void {
    if (error === null && durationMs <= MAX_GROWTH_DURATION && underWay >= this.#limit)
      this.#limit = Math.min(this.#limit + 1, MAX_CONCURRENT_ATTEMPTS);
    else if (isOverwhelmed(status)) this.#limit = Math.max(Math.floor(this.#limit / 2), MIN_CONCURRENT_ATTEMPTS);
  }
}

/** Whether there was no answer, a server error, or a 429. */
function isOverwhelmed(status: number | null): boolean {
  return status === null || status >= 500 || status === 429;
}
