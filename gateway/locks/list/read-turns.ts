/**
 * Lets long reads take turns on the event loop. Each read is divided into slices; together the slices get a few
 * milliseconds of each turn, in the order in which they ask for it, and other work runs in between. So the reads of all
 * callers together delay a ping by little, however many callers there are (interfaces.md §2, Fairness).
 */
import { afterThisTurn, type Milliseconds, monotonicMs } from '../../../proto/clock.js';

/** In one turn of the event loop, slices are started for this time. The last one may run beyond it. */
const MAX_SHARE_OF_TURN: Milliseconds = 3;
/** Maximum number of waiting slices that one turn starts. */
const MAX_STARTS_PER_TURN = 16;

export class ReadTurns {
  readonly #monotonic: () => number;
  readonly #waiting: (() => void)[] = [];
  /** When this turn started its first slice; undefined if it has started none. */
  #firstStartAtMs: number | undefined;
  /** Resolves when the last work of {@link runExclusive} has ended. */
  #lastExclusive: Promise<void> = Promise.resolve();

  /** `monotonic` reads a monotonic clock in ms; tests pass their own. */
  constructor(monotonic: () => number = monotonicMs) {
    this.#monotonic = monotonic;
  }

  /**
   * Resolves when the caller may read one slice, which should take at most a few milliseconds.
   *
   * @throws the signal's reason if it is aborted, since the caller has hung up
   */
  async next(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#waiting.length === 0 && this.#mayStart()) return;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    signal?.throwIfAborted();
  }

  /**
   * Runs work that divides itself into turns of the event loop. Only one such work runs at a time, since several
   * together would make each turn longer.
   *
   * @throws the signal's reason if it is aborted before the work starts; what the work throws
   */
  async runExclusive<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const previous = this.#lastExclusive;
    let end = (): void => undefined;
    this.#lastExclusive = new Promise((resolve) => {
      end = resolve;
    });
    try {
      await previous;
      signal?.throwIfAborted();
      return await work();
    } finally {
      end();
    }
  }

  /**
   * Whether this turn's share is not used up. The microtasks of slices that this turn started have run before, so their
   * time counts too.
   */
  #mayStart(): boolean {
    const nowMs = this.#monotonic();
    if (this.#firstStartAtMs !== undefined) return nowMs - this.#firstStartAtMs < MAX_SHARE_OF_TURN;
    this.#firstStartAtMs = nowMs;
    afterThisTurn(() => this.#startTurn());
    return true;
  }

  /** Starts waiting slices: the first one at once, the others in the next turn of the loop. */
  #startTurn(): void {
    this.#firstStartAtMs = undefined;
    this.#startNext();
    // Each in a separate callback, so that its microtasks have run before the time is checked for the next one.
    for (let left = Math.min(this.#waiting.length, MAX_STARTS_PER_TURN); left > 0; left -= 1)
      afterThisTurn(() => this.#startNext());
  }

  #startNext(): void {
    if (this.#waiting.length > 0 && this.#mayStart()) this.#waiting.shift()?.();
  }
}
