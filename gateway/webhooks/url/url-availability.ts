/**
 * Decides whether attempts may go to a URL now, and how many at once. The URL is in one of these modes, the first that
 * applies:
 *
 * - *held*: the receiver answered with a Retry-After. Nothing goes to the URL until the Retry-After has passed.
 * - *stalled*: an attempt could not be made because this machine lacked something (own-failure.ts). One attempt is made
 *   after 1 s, then after waits that double up to 10 s. The first attempt that is sent ends the mode, whatever its
 *   result.
 * - *probing*: repeated failures opened the circuit (circuit.ts), which lets one attempt through at a time.
 * - *available*: as many attempts run at once as the concurrency limiter allows (concurrency-limiter.ts).
 *
 * In each mode, the attempts at a URL with a rate also start no faster than that (attempt-rate.ts).
 *
 * The mode follows from the results of attempts and the time; no call sets it. A Retry-After is stored and survives a
 * restart; after a restart the URL is neither stalled nor probing. Reads no clock: times are arguments, by the delivery
 * clock.
 */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import type { Failing, Hold, WebhookUrl } from '../../store/contract/webhooks/webhook-url.js';
import type { AttemptResult } from '../sending/attempt.js';
import { AttemptRate } from './attempt-rate.js';
import { Circuit } from './circuit.js';
import { ConcurrencyLimiter } from './concurrency-limiter.js';
import { FailingTime } from './failing-time.js';
import { MAX_RETRY_AFTER } from './schedule.js';

export type UrlMode = 'held' | 'stalled' | 'probing' | 'available';

/** The waits of the mode *stalled*: first and longest. */
const FIRST_STALL_WAIT: Milliseconds = Seconds(1);
const MAX_STALL_WAIT: Milliseconds = Seconds(10);

/** What the result of an attempt changes. */
export interface AvailabilityChange {
  readonly circuit?: 'opened' | 'closed';
  /** For how long all attempts have failed, to be stored; null if the last one succeeded. */
  readonly failing?: Failing | null;
  /** The receiver's Retry-After, to be stored. */
  readonly hold?: Hold;
  /** The URL is to be disabled. */
  readonly disabledWhy?: string;
}

/** The stored values of a URL that its availability depends on. */
export type AvailabilityUrl = Pick<WebhookUrl, 'failingSinceMs' | 'failingForMs' | 'hold'> &
  Partial<Pick<WebhookUrl, 'attemptsPerSecond'>>;

export class UrlAvailability {
  readonly #circuit = new Circuit();
  readonly #limiter = new ConcurrencyLimiter();
  readonly #failing: FailingTime;
  readonly #rate: AttemptRate | undefined;
  #heldUntilMs: number;
  #stall: { readonly untilMs: number; readonly waitMs: Milliseconds } | undefined;

  /** Continues from the URL's stored values. */
  constructor({ failingSinceMs, failingForMs, hold, attemptsPerSecond = null }: AvailabilityUrl, nowMs: number) {
    this.#rate = attemptsPerSecond === null ? undefined : new AttemptRate(attemptsPerSecond, nowMs);
    this.#failing = new FailingTime(failingSinceMs === null ? null : { sinceMs: failingSinceMs, forMs: failingForMs });
    // The stored end may be far off if the machine's clock was changed since: the wait is never longer than asked for.
    this.#heldUntilMs = hold === null ? nowMs : Math.min(hold.untilMs, nowMs + hold.spanMs);
  }

  /** The URL's mode at this time. */
  mode(nowMs: number): UrlMode {
    if (this.#heldUntilMs > nowMs) return 'held';
    if (this.#stall !== undefined) return 'stalled';
    return this.#circuit.isOpen ? 'probing' : 'available';
  }

  /** Until when the receiver asked for no attempts (Retry-After); undefined if it asked for none. */
  heldUntilMs(nowMs: number): number | undefined {
    return this.#heldUntilMs > nowMs ? this.#heldUntilMs : undefined;
  }

  /** When the open circuit's next probe may start; undefined while the circuit is closed. */
  get probeAtMs(): number | undefined {
    return this.#circuit.probeAtMs;
  }

  /** The earliest time at which an attempt may start; undefined if one may start now. */
  availableAtMs(nowMs: number): number | undefined {
    const rateAvailableAtMs = this.#rate?.availableAtMs(nowMs) ?? 0;
    const atMs = Math.max(
      this.#heldUntilMs,
      this.#stall?.untilMs ?? 0,
      this.#circuit.probeAtMs ?? 0,
      rateAvailableAtMs,
    );
    return atMs > nowMs ? atMs : undefined;
  }

  /** How many attempts may start in addition to those under way. */
  freeAttempts(nowMs: number, underWay: number): number {
    if (this.availableAtMs(nowMs) !== undefined) return 0;
    const free = (this.mode(nowMs) === 'available' ? this.#limiter.limit : 1) - underWay;
    return Math.min(free, this.#rate?.free(nowMs) ?? free);
  }

  /** Must be called when an attempt starts. */
  attemptStarted(nowMs: number): void {
    this.#rate?.started(nowMs);
  }

  /** How many of the running attempts may be retries. */
  get retryLimit(): number {
    return this.#limiter.retryLimit;
  }

  /** Notes that an attempt could not be made because this machine lacked something. */
  couldNotSend(nowMs: number): void {
    this.#failing.couldNotSend();
    // Attempts that were already running fail for the same reason: they do not lengthen the wait.
    if (this.#stall !== undefined && nowMs < this.#stall.untilMs) return;
    const waitMs = this.#stall === undefined ? FIRST_STALL_WAIT : Math.min(this.#stall.waitMs * 2, MAX_STALL_WAIT);
    this.#stall = { untilMs: nowMs + waitMs, waitMs };
  }

  /** Notes the result of an attempt. `dateMs`: wall-clock time. `underWay`: running attempts, this one included. */
  note(result: AttemptResult, nowMs: number, dateMs: number, underWay: number): AvailabilityChange {
    this.#stall = undefined;
    this.#limiter.note(result, underWay);
    const hold = this.#hold(result.retryAfter, nowMs);
    return { ...(result.error === null ? this.#succeeded() : this.#failed(result, nowMs, dateMs)), ...hold };
  }

  #hold(retryAfter: Milliseconds | undefined, nowMs: number): Pick<AvailabilityChange, 'hold'> {
    const spanMs = Math.min(retryAfter ?? 0, MAX_RETRY_AFTER);
    if (nowMs + spanMs <= this.#heldUntilMs || spanMs === 0) return {};
    this.#heldUntilMs = nowMs + spanMs;
    return { hold: { untilMs: this.#heldUntilMs, spanMs } };
  }

  #succeeded(): AvailabilityChange {
    const failing = this.#failing.succeeded();
    const circuit = this.#circuit.succeeded() ? { circuit: 'closed' as const } : {};
    return failing === undefined ? circuit : { ...circuit, failing };
  }

  #failed({ status, error }: AttemptResult, nowMs: number, dateMs: number): AvailabilityChange {
    const circuit = this.#circuit.failed(nowMs) ? { circuit: 'opened' as const } : {};
    const failing = this.#failing.failed(nowMs, dateMs);
    const change: AvailabilityChange = failing === undefined ? circuit : { ...circuit, failing };
    if (status === 410) return { ...change, disabledWhy: 'the receiver answered 410: the URL is gone' };
    if (!this.#failing.hasReachedLimit) return change;
    return { ...change, disabledWhy: `every attempt failed for 5 days; the last error: ${error}` };
  }
}
