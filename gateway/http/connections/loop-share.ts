/**
 * How much of a turn of the event loop requests may take. The loop reads every socket that has something before it goes
 * round again: where a hundred connections send a request each, a lock's ping, and its acknowledgement, would wait for
 * all hundred, several times over. Here requests are begun for a few milliseconds in each turn, in the order of their
 * arrival, and what else has arrived comes between (interfaces.md §2, Fairness).
 */
import { afterThisTurn, type Milliseconds, monotonicMs } from '../../../proto/clock.js';

/** So long requests are begun in one turn. The last of them goes on to its end. */
export const SHARE_OF_TURN: Milliseconds = 3;
/** A turn begins so many at most, of those that waited: each is looked at for the time that it took. */
const MOST_OF_TURN = 16;

export class LoopShare {
  readonly #monotonic: () => number;
  /** In the order of their arrival; taken from `#next` on. One of each connection at most. */
  #waiting: (() => void)[] = [];
  #next = 0;
  /** When the first was begun in this turn; undefined where none was. */
  #begunAtMs: number | undefined;

  /** `monotonic` reads ms; another one for tests. */
  constructor(monotonic: () => number = monotonicMs) {
    this.#monotonic = monotonic;
  }

  /** Calls `begin` now, or in a later turn where this one's share is used up. */
  run(begin: () => void): void {
    if (this.#count === 0 && this.#mayBegin()) begin();
    else this.#waiting.push(begin);
  }

  get #count(): number {
    return this.#waiting.length - this.#next;
  }

  /** Whether this turn has a share left. What a request does as a microtask has been done by then, and counts. */
  #mayBegin(): boolean {
    const nowMs = this.#monotonic();
    if (this.#begunAtMs !== undefined) return nowMs - this.#begunAtMs < SHARE_OF_TURN;
    this.#begunAtMs = nowMs;
    afterThisTurn(() => this.#turn());
    return true;
  }

  /** Another turn of the loop. */
  #turn(): void {
    this.#begunAtMs = undefined;
    // Each in a callback of its own, so that what it does as a microtask is done before the next one is looked at.
    for (let left = Math.min(this.#count, MOST_OF_TURN); left > 0; left -= 1) afterThisTurn(() => this.#goOn());
  }

  #goOn(): void {
    const begin = this.#waiting[this.#next];
    if (begin === undefined || !this.#mayBegin()) return;
    this.#next += 1;
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
    begin();
  }
}
