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
/** The shortest pause. Timers can't be that short, so several calls start in a millisecond then. */
const MIN_PAUSE: Milliseconds = 0.1;

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

/** A call that waits for its turn. */
interface WaitingCall {
  readonly start: () => void;
  /** When it must have started. */
  readonly deadlineMs: number;
}

export class PagePace {
  readonly #isBusy: () => boolean;
  readonly #clock: Clock;
  readonly #monotonic: () => number;
  /** In the order of their arrival. */
  readonly #waiting: WaitingCall[] = [];
  /** When a call last started. */
  #startedAtMs = Number.NEGATIVE_INFINITY;
  /** From then until the next start: short enough for every deadline. */
  #pause = PAGE_PAUSE;
  #timer: Timer | undefined;
  /** When the timer starts the next call. */
  #timerAtMs = 0;

  constructor({ isBusy, clock = systemClock, monotonic = monotonicMs }: PagePaceParts) {
    this.#isBusy = isBusy;
    this.#clock = clock;
    this.#monotonic = monotonic;
  }

  /**
   * Calls `start` now, or later if the request is what a page reads and its turn has not come.
   *
   * @returns makes a call that waits give its turn up; has no effect on one that has started
   */
  run(request: RequestHead, start: () => void): () => void {
    if (!isPageRead(request)) {
      start();
      return () => undefined;
    }
    // Whoever waits comes first, and need not wait any more.
    if (!this.#isBusy()) this.#startFirst(this.#waiting.length);
    const nowMs = this.#monotonic();
    const mustWait = this.#waiting.length > 0 || (this.#isBusy() && nowMs < this.#startedAtMs + PAGE_PAUSE);
    const call: WaitingCall = { start, deadlineMs: nowMs + MAX_PAGE_WAIT };
    this.#waiting.push(call);
    if (mustWait) {
      this.#pause = Math.min(this.#pause, this.#pauseFor(call, this.#waiting.length));
      this.#setTimer();
    } else this.#startFirst(1);
    return () => this.#giveUp(call);
  }

  /** Starts what waits, and sets no further timer. To be called once no request can come any more. */
  stop(): void {
    this.#startFirst(this.#waiting.length);
  }

  #giveUp(call: WaitingCall): void {
    const place = this.#waiting.indexOf(call);
    if (place === -1) return;
    this.#waiting.splice(place, 1);
    if (this.#waiting.length === 0) this.#cancelTimer();
  }

  /** The longest pause with which this call, in this place of those that wait, starts in time. */
  #pauseFor({ deadlineMs }: WaitingCall, place: number): Milliseconds {
    return Math.max(MIN_PAUSE, (deadlineMs - this.#startedAtMs) / place);
  }

  /** Starts so many of the calls that wait, and sets the timer for the next. */
  #startFirst(count: number): void {
    const calls = this.#waiting.splice(0, count);
    if (calls.length > 0) this.#startedAtMs = this.#monotonic();
    this.#pause = PAGE_PAUSE;
    for (const [index, call] of this.#waiting.entries())
      this.#pause = Math.min(this.#pause, this.#pauseFor(call, index + 1));
    if (this.#waiting.length === 0) this.#cancelTimer();
    else this.#setTimer();
    for (const { start } of calls) start();
  }

  /** Sets the timer for the next start, unless it is set for no later. */
  #setTimer(): void {
    const nextAtMs = this.#startedAtMs + this.#pause;
    if (this.#timer !== undefined && this.#timerAtMs <= nextAtMs) return;
    this.#cancelTimer();
    this.#timerAtMs = nextAtMs;
    const delay = Math.max(0, Math.ceil(nextAtMs - this.#monotonic()));
    this.#timer = this.#clock.after(delay, () => {
      this.#timer = undefined;
      this.#startFirst(this.#countDue());
    });
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** How many calls are to start now: several if the pause is shorter than a timer can be; all once pings are few. */
  #countDue(): number {
    if (!this.#isBusy()) return this.#waiting.length;
    const nowMs = this.#monotonic();
    const overdue = this.#waiting.filter(({ deadlineMs }) => deadlineMs <= nowMs).length;
    return Math.max(1, overdue, Math.round((nowMs - this.#startedAtMs) / this.#pause));
  }
}

/** Whether the request is what one of our pages reads: only they send this header, unless a program imitates them. */
function isPageRead({ method, headers }: RequestHead): boolean {
  return method === 'GET' && headers[PAGE_HEADER] !== undefined;
}
