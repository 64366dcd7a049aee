/**
 * A clock for virtual runs, which do not wait: its time jumps from one due timer to the next. It reads no real time.
 *
 * The timers are in a binary heap. Their due times are in a parallel list of plain numbers, because the heap mostly
 * compares due times and then does not access the timer objects.
 */
import type { Clock, Milliseconds, Timer } from '../proto/clock.js';

/** A timer. Of timers with the same due time, the one with the lower `order` runs first. */
class VirtualTimer implements Timer {
  readonly order: number;
  callback: (() => void) | undefined;

  constructor(order: number, callback: () => void) {
    this.order = order;
    this.callback = callback;
  }

  /** The timer stays in the heap until it is due, and then does nothing. */
  cancel(): void {
    this.callback = undefined;
  }
}

/** See the top of this file. */
export class VirtualClock implements Clock {
  // Initialised for speed: if a field was once undefined, V8 allocates a new number object at each assignment.
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

  /** When the next timer is due, ms since the epoch. A cancelled timer counts. Infinity without timers. */
  get nextDueMs(): number {
    return this.#dueTimesMs[0] ?? Number.POSITIVE_INFINITY;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    const timer = new VirtualTimer(this.#timersSet++, callback);
    this.#insert(this.#nowMs + Math.max(delay, 0), timer);
    return timer;
  }

  /** Runs every timer that is due by `untilMs`, each at its due time. Timers that are started meanwhile count. */
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

  /** Whether a timer comes before the one at `index`. Timers with the same due time run in the order of creation. */
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
