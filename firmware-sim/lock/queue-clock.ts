/**
 * A clock for runs without waiting: its hands jump from one thing that is due to the next. Many locks wait on it at
 * once, so those who wait stand in a heap. When each is due stands beside it in a list of plain numbers: to find who is
 * first, most of what the heap does, no entry need be looked at.
 */
import type { Clock, Milliseconds, Timer } from '../../proto/clock.js';

class Waiting implements Timer {
  readonly order: number;
  callback: (() => void) | undefined;

  constructor(order: number, callback: () => void) {
    this.order = order;
    this.callback = callback;
  }

  /** The entry stays in the heap until its time comes, and then does nothing. */
  cancel(): void {
    this.callback = undefined;
  }
}

export class QueueClock implements Clock {
  // A number from the beginning, as in lock.ts.
  #nowMs = 0;
  #order = 0;
  readonly #due: number[] = [];
  readonly #heap: Waiting[] = [];

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  /** When something is due next, at the earliest, ms since the epoch; Infinity where nothing waits. */
  get nextDueMs(): number {
    return this.#due[0] ?? Number.POSITIVE_INFINITY;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    const waiting = new Waiting(this.#order++, callback);
    this.#rise(this.#nowMs + Math.max(delay, 0), waiting);
    return waiting;
  }

  /** Runs all that is due until `untilMs`, each at its own time, those that it starts included. */
  run(untilMs: number): void {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      const dueMs = this.#due[0] ?? 0;
      if (dueMs > untilMs) break;
      this.#removeFirst();
      const { callback } = first;
      if (callback === undefined) continue;
      this.#nowMs = Math.max(this.#nowMs, dueMs);
      callback();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Of two that are due at one moment, the one that was asked for first. */
  #isBefore(dueMs: number, waiting: Waiting, index: number): boolean {
    const other = this.#due[index] ?? 0;
    return dueMs < other || (dueMs === other && waiting.order < (this.#heap[index]?.order ?? 0));
  }

  #rise(dueMs: number, waiting: Waiting): void {
    let index = this.#heap.length;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      if (!this.#isBefore(dueMs, waiting, parent)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#due[index] = dueMs;
    this.#heap[index] = waiting;
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    const dueMs = this.#due.pop();
    const { length } = this.#heap;
    if (last === undefined || dueMs === undefined || length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      const right = child + 1;
      if (right < length && this.#isBefore(this.#due[right] ?? 0, this.#heap[right] as Waiting, child)) child = right;
      if (this.#isBefore(dueMs, last, child)) break;
      this.#move(child, index);
      index = child;
    }
    this.#due[index] = dueMs;
    this.#heap[index] = last;
  }

  #move(from: number, to: number): void {
    this.#due[to] = this.#due[from] ?? 0;
    this.#heap[to] = this.#heap[from] as Waiting;
  }
}
