/**
 * How long every attempt at a URL has failed (interfaces.md §3: after 5 days the URL is disabled). Only observed time
 * counts: from one failure to the next in one run of the gateway. Time in which no gateway ran, or could not send for a
 * reason of its own, does not count, and neither does a jump of the machine's clock. Pure: times are arguments.
 */
import { Days, type Milliseconds, Minutes } from '../../../proto/clock.js';
import type { Failing } from '../../store/contract/webhook-store.js';

/** A URL that has failed for so long is disabled. */
export const DISABLED_AFTER: Milliseconds = Days(5);
/** It is stored again once it has grown by so much: storing each failure would cost a write each time. */
const STORED_EVERY: Milliseconds = Minutes(1);

export class FailingTime {
  #failing: Failing | null;
  #storedForMs: Milliseconds;
  /** The last failure that was observed, by the clock that deliveries wait by. */
  #lastMs: number | undefined;

  /** `failing`: as stored; null where the last attempt at the URL did not fail. */
  constructor(failing: Failing | null) {
    this.#failing = failing;
    this.#storedForMs = failing?.forMs ?? 0;
  }

  /** Whether every attempt has failed for 5 days. */
  get isOver(): boolean {
    return (this.#failing?.forMs ?? 0) >= DISABLED_AFTER;
  }

  /** An attempt succeeded. Returns what is to be stored; undefined where nothing is. */
  succeeded(): null | undefined {
    this.#lastMs = undefined;
    this.#storedForMs = 0;
    if (this.#failing === null) return undefined;
    this.#failing = null;
    return null;
  }

  /**
   * An attempt failed, at `nowMs` by the clock that deliveries wait by and `dateMs` of the wall clock. Returns
   * likewise.
   */
  failed(nowMs: number, dateMs: number): Failing | undefined {
    const before = this.#failing;
    const seen = this.#lastMs === undefined ? 0 : Math.max(nowMs - this.#lastMs, 0);
    this.#lastMs = nowMs;
    this.#failing = { sinceMs: before?.sinceMs ?? dateMs, forMs: (before?.forMs ?? 0) + seen };
    const { forMs } = this.#failing;
    if (before !== null && forMs - this.#storedForMs < STORED_EVERY && !this.isOver) return undefined;
    this.#storedForMs = forMs;
    return this.#failing;
  }

  /** Nothing could be sent for a reason of our own: the time until the next failure does not count. */
  unseen(): void {
    this.#lastMs = undefined;
  }
}
