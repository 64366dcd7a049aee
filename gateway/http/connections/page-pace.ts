/**
 * Spreads the calls of our pages while locks send very many pings. A screen loads what it shows by several calls at the
 * same moment. Each takes 1 to 3 ms of the main thread, mostly because code that runs a few times a second is not
 * compiled, so the pings of 20 ms would wait for all of them. Here such calls start one at a time with a pause between
 * them, in the order of their arrival.
 *
 * Only what pages read is paced: a change, such as a command, and the calls of programs start at once. The merchants'
 * and the operators' port share one instance.
 */
import type { IncomingMessage } from 'node:http';
import { type Clock, type Milliseconds, monotonicMs, systemClock, type Timer } from '../../../proto/clock.js';
import { PAGE_HEADER } from '../../console/page-guard.js';

/** From the start of a call until that of the next. */
export const PAGE_PAUSE: Milliseconds = 40;
/** The pause is shorter if many calls wait, so that none of them waits for longer than this. */
export const MAX_PAGE_WAIT: Milliseconds = 500;

/** The parts of a request that tell whether a page reads by it. */
type RequestHead = Pick<IncomingMessage, 'method' | 'headers'>;

export interface PagePaceParts {
  /** Whether locks send very many pings now. */
  readonly isBusy: () => boolean;
  /** Starts timers; the machine's clock by default. */
  readonly clock?: Clock;
  /** Reads a monotonic clock in ms; tests pass their own. */
  readonly monotonic?: () => number;
}

export class PagePace {
  readonly #isBusy: () => boolean;
  readonly #clock: Clock;
  readonly #monotonic: () => number;
  /** Starts waiting calls, in the order of their arrival. */
  readonly #waiting: (() => void)[] = [];
  /** When the last of them must have started. */
  #deadlineMs = 0;
  /** When a call last started. */
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  /** When the timer starts the next call. */
  #timerAtMs = 0;

  constructor({ isBusy, clock = systemClock, monotonic = monotonicMs }: PagePaceParts) {
    this.#isBusy = isBusy;
    this.#clock = clock;
    this.#monotonic = monotonic;
  }

  /** Calls `start` now, or later if the request is what a page reads and its turn has not come. */
  run(request: RequestHead, start: () => void): void {
    if (!isPageRead(request)) {
      start();
      return;
    }
    const nowMs = this.#monotonic();
    const mustWait = this.#waiting.length > 0 || (this.#isBusy() && nowMs < this.#startedAtMs + PAGE_PAUSE);
    if (mustWait) {
      this.#waiting.push(start);
      this.#deadlineMs = nowMs + MAX_PAGE_WAIT;
      this.#setTimer();
      return;
    }
    this.#startedAtMs = nowMs;
    start();
  }

  /** From the last start until the next. */
  get #pause(): Milliseconds {
    return Math.min(PAGE_PAUSE, (this.#deadlineMs - this.#startedAtMs) / this.#waiting.length);
  }

  /** Sets the timer for the next start, unless it is set for no later. */
  #setTimer(): void {
    const nextAtMs = this.#startedAtMs + this.#pause;
    if (this.#timer !== undefined && this.#timerAtMs <= nextAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = nextAtMs;
    const delay = Math.max(0, Math.ceil(nextAtMs - this.#monotonic()));
    this.#timer = this.#clock.after(delay, () => this.#onTimer());
  }

  /** Starts the calls whose turn has come: several if the pause is shorter than a timer can be. */
  #onTimer(): void {
    this.#timer = undefined;
    const nowMs = this.#monotonic();
    const due = nowMs < this.#deadlineMs ? Math.round((nowMs - this.#startedAtMs) / this.#pause) : this.#waiting.length;
    const starts = this.#waiting.splice(0, Math.max(1, due));
    this.#startedAtMs = nowMs;
    if (this.#waiting.length > 0) this.#setTimer();
    for (const start of starts) start();
  }
}

/** Whether one of our pages asks for something; browsers send no such header by themselves, nor do other programs. */
function isPageRead({ method, headers }: RequestHead): boolean {
  return method === 'GET' && headers[PAGE_HEADER] !== undefined;
}
