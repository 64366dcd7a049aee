/**
 * How long a URL has done nothing but fail (interfaces.md §3: 5 days disable it). What counts is the time that was
 * seen: from one failure to the next while one gateway ran. Time in which no gateway ran, or could not send for a
 * reason of its own, does not count, and neither does a leap of the machine's clock. Pure: times are arguments.
 */
import { Days, type Milliseconds, Minutes } from '../../../proto/clock.js';
import type { Failing } from '../../store/contract/webhook-store.js';

/** A URL that has failed for so long is disabled. */
export const DISABLED_AFTER: Milliseconds = Days(5);
/** It is written down again once it has grown by so much: more often would cost a write with each failure. */
const NOTED_EVERY: Milliseconds = Minutes(1);

export class FailingTime {
  #failing: Failing | null;
  #notedForMs: Milliseconds;
  /** The last failure that was seen, by the clock that deliveries wait by. */
  #lastMs: number | undefined;

  /** `failing`: as it was written down by the gateway before; null where the URL did not fail. */
  constructor(failing: Failing | null) {
    this.#failing = failing;
    this.#notedForMs = failing?.forMs ?? 0;
  }

  /** Whether the URL has done nothing but fail for 5 days. */
  get isOver(): boolean {
    return (this.#failing?.forMs ?? 0) >= DISABLED_AFTER;
  }

  /** An attempt went well. Returns what is to be written down; undefined where nothing changed. */
  succeeded(): null | undefined {
    this.#lastMs = undefined;
    this.#notedForMs = 0;
    if (this.#failing === null) return undefined;
    this.#failing = null;
    return null;
  }

  /** An attempt failed: `nowMs` by the clock that deliveries wait by, `dateMs` by the wall's. Returns as above. */
  failed(nowMs: number, dateMs: number): Failing | undefined {
    const before = this.#failing;
    const seen = this.#lastMs === undefined ? 0 : Math.max(nowMs - this.#lastMs, 0);
    this.#lastMs = nowMs;
    this.#failing = { sinceMs: before?.sinceMs ?? dateMs, forMs: (before?.forMs ?? 0) + seen };
    const { forMs } = this.#failing;
    if (before !== null && forMs - this.#notedForMs < NOTED_EVERY && !this.isOver) return undefined;
    this.#notedForMs = forMs;
    return this.#failing;
  }

  /** Nothing could be sent for a reason of our own: until the next failure nobody knows how the URL is. */
  unseen(): void {
    this.#lastMs = undefined;
  }
}
