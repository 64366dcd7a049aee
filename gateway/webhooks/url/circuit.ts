/**
 * Whether a URL is worth attempts (interfaces.md §3). Pure: the time is an argument, by the clock that deliveries wait
 * by (delivery-clock.ts). The circuit is in one of two modes:
 *
 * - *closed*: attempts go to the URL. Ten failures in a row open the circuit.
 * - *open*: attempts wait, except for a probe at `probeAtMs`. Each probe that fails doubles the wait for the next one,
 *   up to the longest. The first success, of any attempt, closes the circuit.
 */
import { type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';

/** So many failures in a row open it: more than one event's whole schedule, so that one bad event doesn't. */
export const OPENS_AFTER = 10;
/** From opening to the first probe. */
export const FIRST_PROBE_AFTER: Milliseconds = Seconds(5);
export const LONGEST_PROBE_WAIT: Milliseconds = Minutes(5);

type State =
  | { readonly mode: 'closed'; readonly failures: number }
  | { readonly mode: 'open'; readonly probeAtMs: number; readonly wait: Milliseconds };

const CLOSED: State = { mode: 'closed', failures: 0 };

export class Circuit {
  #state: State = CLOSED;

  get isOpen(): boolean {
    return this.#state.mode === 'open';
  }

  /** When the next probe may start; undefined while the circuit is closed. */
  get probeAtMs(): number | undefined {
    return this.#state.mode === 'open' ? this.#state.probeAtMs : undefined;
  }

  /** An attempt succeeded. Returns whether that closed the circuit. */
  succeeded(): boolean {
    const wasOpen = this.isOpen;
    this.#state = CLOSED;
    return wasOpen;
  }

  /** An attempt failed at this time. Returns whether that opened the circuit. */
  failed(nowMs: number): boolean {
    if (this.#state.mode === 'closed') {
      const failures = this.#state.failures + 1;
      const isOpening = failures >= OPENS_AFTER;
      this.#state = isOpening ? openFrom(nowMs, FIRST_PROBE_AFTER) : { mode: 'closed', failures };
      return isOpening;
    }
    // An attempt that was under way when the circuit opened is not a probe.
    if (nowMs >= this.#state.probeAtMs)
      this.#state = openFrom(nowMs, Math.min(this.#state.wait * 2, LONGEST_PROBE_WAIT));
    return false;
  }
}

function openFrom(nowMs: number, wait: Milliseconds): State {
  return { mode: 'open', probeAtMs: nowMs + wait, wait };
}
