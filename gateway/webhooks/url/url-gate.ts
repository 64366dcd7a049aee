/**
 * Whether attempts may go to a URL at the moment, and how many. It is in one of these modes, the first that applies:
 *
 * - *held*: the receiver answered with a Retry-After. Nothing goes to the URL until then, whatever it is.
 * - *stalled*: an attempt could not be made for a reason of our own (own-failure.ts). One is tried after a short wait,
 *   then at waits that double up to 10 s. The first that can be made, well or badly, ends it.
 * - *probing*: the URL only fails, so its circuit is open (circuit.ts). One attempt at a time, at waits of its own.
 * - *open*: as many attempts at once as the window allows (concurrency-limiter.ts).
 *
 * Which of them it is follows from what came of the attempts. A Retry-After is written down and outlives a restart; the
 * rest begins anew. Pure: times are arguments, by the clock that deliveries wait by.
 */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import type { Failing, Hold, WebhookUrl } from '../../store/contract/webhook-store.js';
import { ConcurrencyLimiter } from '../concurrency-limiter.js';
import type { AttemptResult } from '../sending/attempt.js';
import { Circuit } from './circuit.js';
import { FailingTime } from './failing-time.js';
import { LONGEST_RETRY_AFTER } from './schedule.js';

/** The waits after a failure of our own: the first, and the longest. */
const FIRST_STALL: Milliseconds = Seconds(1);
const LONGEST_STALL: Milliseconds = Seconds(10);

/** What an attempt changed. */
export interface GateChange {
  readonly circuit?: 'opened' | 'closed';
  /** To be written down. */
  readonly failing?: Failing | null;
  readonly hold?: Hold;
  /** The URL is to be disabled. */
  readonly disabledWhy?: string;
}

export class UrlGate {
  readonly #circuit = new Circuit();
  readonly #window = new ConcurrencyLimiter();
  readonly #failing: FailingTime;
  #heldUntilMs: number;
  #stall: { readonly untilMs: number; readonly waitMs: Milliseconds } | undefined;

  /** Goes on with what was written down of the URL. */
  constructor(
    { failingSinceMs, failingForMs, hold }: Pick<WebhookUrl, 'failingSinceMs' | 'failingForMs' | 'hold'>,
    nowMs: number,
  ) {
    this.#failing = new FailingTime(failingSinceMs === null ? null : { sinceMs: failingSinceMs, forMs: failingForMs });
    this.#heldUntilMs = hold === null ? nowMs : Math.min(hold.untilMs, nowMs + hold.spanMs);
  }

  /** Until when the receiver wants nothing; undefined where it takes what comes. */
  heldUntilMs(nowMs: number): number | undefined {
    return this.#heldUntilMs > nowMs ? this.#heldUntilMs : undefined;
  }

  /** When the open circuit's next probe may start; undefined while it is closed. */
  get probeAtMs(): number | undefined {
    return this.#circuit.probeAtMs;
  }

  /** Nothing may start before this time; undefined where something may now. */
  opensAtMs(nowMs: number): number | undefined {
    const atMs = Math.max(this.#heldUntilMs, this.#stall?.untilMs ?? 0, this.#circuit.probeAtMs ?? 0);
    return atMs > nowMs ? atMs : undefined;
  }

  /** How many attempts may start beside those under way. */
  room(nowMs: number, underWay: number): number {
    if (this.opensAtMs(nowMs) !== undefined) return 0;
    const isOneByOne = this.#stall !== undefined || this.#circuit.isOpen;
    return (isOneByOne ? 1 : this.#window.size) - underWay;
  }

  /** How many of the attempts under way may be retries. */
  get forRetries(): number {
    return this.#window.forRetries;
  }

  /** An attempt could not be made for a reason of our own. */
  couldNotSend(nowMs: number): void {
    this.#failing.unseen();
    // Others that were under way with the one that began it say the same.
    if (this.#stall !== undefined && nowMs < this.#stall.untilMs) return;
    const waitMs = Math.min((this.#stall?.waitMs ?? FIRST_STALL / 2) * 2, LONGEST_STALL);
    this.#stall = { untilMs: nowMs + waitMs, waitMs };
  }

  /** What came of an attempt. `dateMs` is the wall's time, `underWay` how many were under way with it. */
  note(result: AttemptResult, nowMs: number, dateMs: number, underWay: number): GateChange {
    this.#stall = undefined;
    this.#window.note(result, underWay);
    const hold = this.#hold(result.retryAfter, nowMs);
    return { ...(result.error === null ? this.#succeeded() : this.#failed(result, nowMs, dateMs)), ...hold };
  }

  #hold(retryAfter: Milliseconds | undefined, nowMs: number): Pick<GateChange, 'hold'> {
    const spanMs = Math.min(retryAfter ?? 0, LONGEST_RETRY_AFTER);
    if (nowMs + spanMs <= this.#heldUntilMs || spanMs === 0) return {};
    this.#heldUntilMs = nowMs + spanMs;
    return { hold: { untilMs: this.#heldUntilMs, spanMs } };
  }

  #succeeded(): GateChange {
    const failing = this.#failing.succeeded();
    const circuit = this.#circuit.succeeded() ? { circuit: 'closed' as const } : {};
    return failing === undefined ? circuit : { ...circuit, failing };
  }

  #failed({ status, error }: AttemptResult, nowMs: number, dateMs: number): GateChange {
    const circuit = this.#circuit.failed(nowMs) ? { circuit: 'opened' as const } : {};
    const failing = this.#failing.failed(nowMs, dateMs);
    const change: GateChange = failing === undefined ? circuit : { ...circuit, failing };
    if (status === 410) return { ...change, disabledWhy: 'the receiver answered 410: the URL is gone' };
    if (!this.#failing.isOver) return change;
    return { ...change, disabledWhy: `nothing but failure for 5 days; the last: ${error}` };
  }
}
