/**
 * A clock for runs without waiting: its time jumps from one due timer to the next. The timers are in a binary heap, and
 * their due times are in a parallel list of plain numbers: most of the heap's work is comparing due times, which then
 * touches no timer object.
 */
import type { Clock, Milliseconds, Timer } from '../proto/clock.js';

class VirtualTimer implements Timer {
  readonly order: number;
  callback: (() => void) | undefined;

  constructor(order: number, callback: () => void) {
    this.order = order;
    this.callback = callback;
  }

  /** The entry stays in the heap until it is due, and then does nothing. */
  cancel(): void {
    this.callback = undefined;
  }
}

export class VirtualClock implements Clock {
  // A number from the start, as in lock.ts.
  #nowMs = 0;
  #timersSet = 0;
  readonly #dueTimesMs: number[] = [];
  readonly #heap: VirtualTimer[] = [];

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  /** When the next timer is due, or a cancelled one was, ms since the epoch; Infinity where there is none. */
  get nextDueMs(): number {
    return this.#dueTimesMs[0] ?? Number.POSITIVE_INFINITY;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    const timer = new VirtualTimer(this.#timersSet++, callback);
    this.#insert(this.#nowMs + Math.max(delay, 0), timer);
    return timer;
  }

  /** Runs every timer that is due by `untilMs`, each at its own time, including those that they start. */
  run(untilMs: number): void {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      const dueMs = this.#dueTimesMs[0] ?? 0;
      if (dueMs > untilMs) break;
      this.#removeFirst();
      const { callback } = first;
      if (callback === undefined) continue;
      this.#nowMs = Math.max(this.#nowMs, dueMs);
      callback();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Of two timers due at the same time, the one that was set first comes first. */
  #isBefore(dueMs: number, timer: VirtualTimer, index: number): boolean {
    const other = this.#dueTimesMs[index] ?? 0;
    return dueMs < other || (dueMs === other && timer.order < (this.#heap[index]?.order ?? 0));
  }

  #insert(dueMs: number, timer: VirtualTimer): void {
    let index = this.#heap.length;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      if (!this.#isBefore(dueMs, timer, parent)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#dueTimesMs[index] = dueMs;
    this.#heap[index] = timer;
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    const dueMs = this.#dueTimesMs.pop();
    const { length } = this.#heap;
    if (last === undefined || dueMs === undefined || length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      const right = child + 1;
      if (right < length && this.#isBefore(this.#dueTimesMs[right] ?? 0, this.#heap[right] as VirtualTimer, child))
        child = right;
      if (this.#isBefore(dueMs, last, child)) break;
      this.#move(child, index);
      index = child;
    }
    this.#dueTimesMs[index] = dueMs;
    this.#heap[index] = last;
  }

  #move(from: number, to: number): void {
    this.#dueTimesMs[to] = this.#dueTimesMs[from] ?? 0;
    this.#heap[to] = this.#heap[from] as VirtualTimer;
  }
}
