/**
 * Limits the share of HTTP requests in each turn of the event loop. In one turn the loop reads every socket that has
 * data: if a hundred connections send a request each, a lock's ping and its acknowledgement would wait for all hundred,
 * several times. Here requests are started for only a few milliseconds in each turn, in the order of their arrival, and
 * other work runs in between (interfaces.md §2).
 */
import { afterThisTurn, type Milliseconds, monotonicMs } from '../../../proto/clock.js';

/** In one turn of the event loop, requests are started for this time. The last one may run beyond it. */
export const MAX_SHARE_OF_TURN: Milliseconds = 3;
/** Maximum number of waiting requests that one turn starts. */
const MAX_STARTS_PER_TURN = 16;

export class LoopShare {
  readonly #monotonic: () => number;
  /** Starts waiting requests, in the order of their arrival. */
  readonly #waiting: (() => void)[] = [];
  /** When this turn started its first request; undefined if it has started none. */
  #firstStartAtMs: number | undefined;

  /** `monotonic` reads a monotonic clock in ms; tests pass their own. */
  constructor(monotonic: () => number = monotonicMs) {
    this.#monotonic = monotonic;
  }

  /** Calls `start` now, or in a later turn if this turn's share is used up. */
  run(start: () => void): void {
    if (this.#waiting.length === 0 && this.#mayStart()) start();
    else this.#waiting.push(start);
  }

  /**
   * Whether this turn's share is not used up. The microtasks of requests that this turn started have run before, so
   * their time counts too.
   */
  #mayStart(): boolean {
    const nowMs = this.#monotonic();
    if (this.#firstStartAtMs !== undefined) return nowMs - this.#firstStartAtMs < MAX_SHARE_OF_TURN;
    this.#firstStartAtMs = nowMs;
    afterThisTurn(() => this.#startTurn());
    return true;
  }

  /** Starts waiting requests in a new turn of the loop. */
  #startTurn(): void {
    this.#firstStartAtMs = undefined;
    // Each in a separate callback, so that its microtasks have run before the time is checked for the next one.
    for (let remaining = Math.min(this.#waiting.length, MAX_STARTS_PER_TURN); remaining > 0; remaining -= 1)
      afterThisTurn(() => this.#startNext());
  }

  #startNext(): void {
    if (this.#waiting.length > 0 && this.#mayStart()) this.#waiting.shift()?.();
  }
}
