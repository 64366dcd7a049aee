/**
 * The circuit breaker of one URL: stops attempts at a URL that keeps failing (interfaces.md §3). Reads no clock: times
 * are arguments, by the delivery clock (delivery-clock.ts). The circuit is in one of two modes:
 *
 * - *closed*: attempts go to the URL. Ten failures in a row open the circuit.
 * - *open*: attempts wait, except for one probe at `probeAtMs`. Each failed probe doubles the wait for the next one, up
 *   to a maximum. The first success of any attempt closes the circuit.
 */
import { type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';

/**
 * Failures in a row that open the circuit: more than one event's retry schedule, so that one bad event can't open it.
 */
export const FAILURES_TO_OPEN = 10;
/** The wait from opening to the first probe, and the maximum wait between probes. */
export const FIRST_PROBE_WAIT: Milliseconds = Seconds(5);
export const MAX_PROBE_WAIT: Milliseconds = Minutes(5);

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
      const isOpening = failures >= FAILURES_TO_OPEN;
      this.#state = isOpening ? openFrom(nowMs, FIRST_PROBE_WAIT) : { mode: 'closed', failures };
      return isOpening;
    }
    // An attempt that was under way when the circuit opened is not a probe.
    if (nowMs >= this.#state.probeAtMs) this.#state = openFrom(nowMs, Math.min(this.#state.wait * 2, MAX_PROBE_WAIT));
    return false;
  }
}

function openFrom(nowMs: number, wait: Milliseconds): State {
  return { mode: 'open', probeAtMs: nowMs + wait, wait };
}
