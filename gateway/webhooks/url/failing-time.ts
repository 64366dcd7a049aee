/**
 * Measures for how long all attempts at a URL have failed (interfaces.md §3: after 5 days the URL is disabled). Only
 * observed time counts: from one failure to the next within one run of the gateway. Time in which the gateway did not
 * run or could not send does not count, nor do jumps of the machine's clock. Reads no clock: times are arguments. The
 * delivery clock (delivery-clock.ts) never jumps; the wall clock may.
 */
import { Days, type Milliseconds, Minutes } from '../../../proto/clock.js';
import type { Failing } from '../../store/contract/webhooks/webhook-url.js';

/** A URL is disabled after failing for this long. */
export const DISABLED_AFTER: Milliseconds = Days(5);
/** The failing time is stored each time it has grown by this much: storing every failure would cost a write each. */
const STORE_INTERVAL: Milliseconds = Minutes(1);

export class FailingTime {
  /** Since when (wall-clock time) and for how long attempts have failed; null while they succeed. */
  #failing: Failing | null;
  /** The failing time that the store has. */
  #storedForMs: Milliseconds;
  /** When the last failure was observed, by the delivery clock. */
  #lastFailureMs: number | undefined;

  /** @param failing as stored; null if the last attempt at the URL did not fail */
  constructor(failing: Failing | null) {
    this.#failing = failing;
    this.#storedForMs = failing?.forMs ?? 0;
  }

  /** Whether every attempt has failed for 5 days. */
  get hasReachedLimit(): boolean {
    return (this.#failing?.forMs ?? 0) >= DISABLED_AFTER;
  }

  /** Notes a success. Returns the value to store; undefined if the stored value stays. */
  succeeded(): null | undefined {
    this.#lastFailureMs = undefined;
    this.#storedForMs = 0;
    if (this.#failing === null) return undefined;
    this.#failing = null;
    return null;
  }

  /**
   * Notes a failure at `nowMs` by the delivery clock and `dateMs` by the wall clock. Returns the value to store;
   * undefined if the stored value stays.
   */
  failed(nowMs: number, dateMs: number): Failing | undefined {
    const before = this.#failing;
    const observedMs = this.#lastFailureMs === undefined ? 0 : Math.max(nowMs - this.#lastFailureMs, 0);
    this.#lastFailureMs = nowMs;
    this.#failing = { sinceMs: before?.sinceMs ?? dateMs, forMs: (before?.forMs ?? 0) + observedMs };
    const { forMs } = this.#failing;
    if (before !== null && forMs - this.#storedForMs < STORE_INTERVAL && !this.hasReachedLimit) return undefined;
    this.#storedForMs = forMs;
    return this.#failing;
  }

  /** Notes that nothing could be sent (own-failure.ts): the time until the next failure does not count. */
  couldNotSend(): void {
    this.#lastFailureMs = undefined;
  }
}
