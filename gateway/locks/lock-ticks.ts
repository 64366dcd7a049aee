/**
 * Requests ticks for locks. Some findings of the judge depend only on time, such as a late lock. So each lock has a due
 * time, which the judge sets, and at that time a tick is requested: an event for the judge that only says what time it
 * is. Used by `Locks` (locks.ts).
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import { Deadlines } from '../../proto/deadlines.js';
import type { KnownLock } from './known-lock.js';

/** The maximum delay of the timer for ticks: a change of the machine's clock is noticed within this time. */
const MAX_TICK_DELAY = Seconds(60);

export class LockTicks {
  readonly #clock: Clock;
  readonly #onDue: (locks: readonly KnownLock[]) => void;
  /** The locks by the due time of their next tick. It ignores an entry whose time differs from the lock's due time. */
  readonly #deadlines = new Deadlines<KnownLock>();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /** @param clock the run's clock. @param onDue called with locks whose tick is due */
  constructor(clock: Clock, onDue: (locks: readonly KnownLock[]) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Sets when the lock's next tick is due. {@link schedule} must be called afterwards. */
  setDue(lock: KnownLock, dueMs: number): void {
    this.#deadlines.set(lock, dueMs);
  }

  /** The lock gets no ticks until {@link setDue} is called for it. */
  clearDue(lock: KnownLock): void {
    lock.dueMs = Number.POSITIVE_INFINITY;
  }

  /** Sets the timer for the next tick of any lock. Must be called after events were judged. */
  schedule(): void {
    const dueMs = this.#deadlines.firstMs;
    if (dueMs === this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    if (dueMs === Number.POSITIVE_INFINITY) return;
    // A deadline has passed only after its due time, not at it.
    const delay = Math.min(Math.max(dueMs - this.#clock.now() + 1, 1), MAX_TICK_DELAY);
    this.#timer = this.#clock.after(delay, () => this.#requestTicks());
  }

  /** Stops requesting ticks. */
  stop(): void {
    this.#timer?.cancel();
  }

  #requestTicks(): void {
    // Equals no time, so that the timer is set again in any case.
    this.#timerDueMs = Number.NaN;
    const due: KnownLock[] = [];
    for (let lock = this.#takeDue(); lock !== undefined; lock = this.#takeDue()) due.push(lock);
    if (due.length > 0) this.#onDue(due);
    this.schedule();
  }

  /** Removes and returns a lock whose tick is due; undefined if there is none. */
  #takeDue(): KnownLock | undefined {
    return this.#deadlines.take(this.#clock.now());
  }
}
