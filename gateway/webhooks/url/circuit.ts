/**
 * Whether a URL is worth attempts (interfaces.md §3). After repeated failures its circuit opens: one attempt at a time
 * probes it, at times that grow apart, and everything else waits. The first success closes it. Pure: the time is an
 * argument, by the clock that deliveries wait by (delivery-clock.ts).
 */
import { type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';

/** So many failures in a row open it. More than one event's whole schedule, so that one bad event doesn't. */
export const OPENS_AFTER = 10;
/** From opening to the first probe; each that fails doubles the wait, up to the longest. */
export const FIRST_PROBE_AFTER: Milliseconds = Seconds(5);
export const LONGEST_PROBE_WAIT: Milliseconds = Minutes(5);

export class Circuit {
  #failures = 0;
  #wait: Milliseconds = FIRST_PROBE_AFTER;
  #probeAtMs: number | undefined;

  get isOpen(): boolean {
    return this.#probeAtMs !== undefined;
  }

  /** When the next probe may start; undefined while it is closed. */
  get probeAtMs(): number | undefined {
    return this.#probeAtMs;
  }

  /** An attempt went well. Returns whether that closed it. */
  succeeded(): boolean {
    const wasOpen = this.isOpen;
    this.#failures = 0;
    this.#wait = FIRST_PROBE_AFTER;
    this.#probeAtMs = undefined;
    return wasOpen;
  }

  /** An attempt failed at this time. Returns whether that opened it. */
  failed(nowMs: number): boolean {
    this.#failures += 1;
    if (this.#probeAtMs === undefined) {
      if (this.#failures < OPENS_AFTER) return false;
      this.#probeAtMs = nowMs + this.#wait;
      return true;
    }
    // One that was under way when it opened is no probe.
    if (nowMs < this.#probeAtMs) return false;
    this.#wait = Math.min(this.#wait * 2, LONGEST_PROBE_WAIT);
    this.#probeAtMs = nowMs + this.#wait;
    return false;
  }
}
