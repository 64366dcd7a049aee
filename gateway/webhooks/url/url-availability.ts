/**
 * Whether attempts may go to a URL now, and how many at once. The URL is in one of these modes, the first that applies:
 *
 * - *held*: the receiver answered with a Retry-After. Nothing at all goes to the URL until then.
 * - *stalled*: an attempt could not be made for a reason of our own (own-failure.ts). One attempt is made after 1 s,
 *   then at waits that double up to 10 s. The first that can be made ends the mode, whether the receiver takes it or
 *   not.
 * - *probing*: repeated failures opened the circuit (circuit.ts), which lets one attempt through at a time.
 * - *open*: as many attempts run at once as the concurrency limiter allows (concurrency-limiter.ts).
 *
 * The mode follows from the results of attempts and from the time; nobody sets it. A Retry-After is stored and outlives
 * a restart; the rest starts afresh. Pure: times are arguments, by the clock that deliveries wait by.
 */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import type { Failing, Hold, WebhookUrl } from '../../store/contract/webhook-store.js';
import type { AttemptResult } from '../sending/attempt.js';
import { Circuit } from './circuit.js';
import { ConcurrencyLimiter } from './concurrency-limiter.js';
import { FailingTime } from './failing-time.js';
import { LONGEST_RETRY_AFTER } from './schedule.js';

export type UrlMode = 'held' | 'stalled' | 'probing' | 'open';

/** The waits after a failure of our own: the first, and the longest. */
const FIRST_STALL: Milliseconds = Seconds(1);
const LONGEST_STALL: Milliseconds = Seconds(10);

/** What the result of an attempt changes. */
export interface AvailabilityChange {
  readonly circuit?: 'opened' | 'closed';
  /** To be stored. */
  readonly failing?: Failing | null;
  readonly hold?: Hold;
  /** The URL is to be disabled. */
  readonly disabledWhy?: string;
}

export class UrlAvailability {
  readonly #circuit = new Circuit();
  readonly #limiter = new ConcurrencyLimiter();
  readonly #failing: FailingTime;
  #heldUntilMs: number;
  #stall: { readonly untilMs: number; readonly waitMs: Milliseconds } | undefined;

  /** Goes on with what is stored of the URL. */
  constructor(
    { failingSinceMs, failingForMs, hold }: Pick<WebhookUrl, 'failingSinceMs' | 'failingForMs' | 'hold'>,
    nowMs: number,
  ) {
    this.#failing = new FailingTime(failingSinceMs === null ? null : { sinceMs: failingSinceMs, forMs: failingForMs });
    this.#heldUntilMs = hold === null ? nowMs : Math.min(hold.untilMs, nowMs + hold.spanMs);
  }

  mode(nowMs: number): UrlMode {
    if (this.#heldUntilMs > nowMs) return 'held';
    if (this.#stall !== undefined) return 'stalled';
    return this.#circuit.isOpen ? 'probing' : 'open';
  }

  /** Until when the receiver asked for no attempts; undefined where it did not. */
  heldUntilMs(nowMs: number): number | undefined {
    return this.#heldUntilMs > nowMs ? this.#heldUntilMs : undefined;
  }

  /** When the open circuit's next probe may start; undefined while it is closed. */
  get probeAtMs(): number | undefined {
    return this.#circuit.probeAtMs;
  }

  /** No attempt may start before this time; undefined where one may start now. */
  opensAtMs(nowMs: number): number | undefined {
    const atMs = Math.max(this.#heldUntilMs, this.#stall?.untilMs ?? 0, this.#circuit.probeAtMs ?? 0);
    return atMs > nowMs ? atMs : undefined;
  }

  /** How many attempts may start in addition to those under way. */
  room(nowMs: number, underWay: number): number {
    if (this.opensAtMs(nowMs) !== undefined) return 0;
    return (this.mode(nowMs) === 'open' ? this.#limiter.size : 1) - underWay;
  }

  /** How many of the attempts under way may be retries. */
  get forRetries(): number {
    return this.#limiter.forRetries;
  }

  /** An attempt could not be made for a reason of our own. */
  couldNotSend(nowMs: number): void {
    this.#failing.unseen();
    // Other attempts that were under way with the first one fail for the same reason.
    if (this.#stall !== undefined && nowMs < this.#stall.untilMs) return;
    const waitMs = Math.min((this.#stall?.waitMs ?? FIRST_STALL / 2) * 2, LONGEST_STALL);
    this.#stall = { untilMs: nowMs + waitMs, waitMs };
  }

  /** The result of an attempt. `dateMs` is wall-clock time; `underWay` counts the attempts under way, this one too. */
  note(result: AttemptResult, nowMs: number, dateMs: number, underWay: number): AvailabilityChange {
    this.#stall = undefined;
    this.#limiter.note(result, underWay);
    const hold = this.#hold(result.retryAfter, nowMs);
    return { ...(result.error === null ? this.#succeeded() : this.#failed(result, nowMs, dateMs)), ...hold };
  }

  #hold(retryAfter: Milliseconds | undefined, nowMs: number): Pick<AvailabilityChange, 'hold'> {
    const spanMs = Math.min(retryAfter ?? 0, LONGEST_RETRY_AFTER);
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
    if (!this.#failing.isOver) return change;
    return { ...change, disabledWhy: `nothing but failure for 5 days; the last: ${error}` };
  }
}
