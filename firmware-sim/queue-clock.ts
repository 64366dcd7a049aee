/**
 * A clock for runs without waiting: its hands jump from one thing that is due to the next. Many locks wait on it at
 * once, so those who wait stand in a heap.
 */
import type { Clock, Milliseconds, Timer } from '../proto/clock.js';

class Waiting implements Timer {
  readonly dueMs: number;
  readonly order: number;
  callback: (() => void) | undefined;

  constructor(dueMs: number, order: number, callback: () => void) {
    this.dueMs = dueMs;
    this.order = order;
    this.callback = callback;
  }

  /** The entry stays in the heap until its time comes, and then does nothing. */
  cancel(): void {
    this.callback = undefined;
  }

  isBefore(other: Waiting): boolean {
    return this.dueMs < other.dueMs || (this.dueMs === other.dueMs && this.order < other.order);
  }
}

export class QueueClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #heap: Waiting[] = [];

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  /** When something is due next, at the earliest, ms since the epoch; Infinity where nothing waits. */
  get nextDueMs(): number {
    return this.#heap[0]?.dueMs ?? Number.POSITIVE_INFINITY;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    const waiting = new Waiting(this.#nowMs + Math.max(delay, 0), this.#order++, callback);
    this.#rise(waiting);
    return waiting;
  }

  /** Runs all that is due until `untilMs`, each at its own time, those that it starts included. */
  run(untilMs: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.dueMs <= untilMs; first = this.#heap[0]) {
      this.#removeFirst();
      const { callback } = first;
      if (callback === undefined) continue;
      this.#nowMs = Math.max(this.#nowMs, first.dueMs);
      callback();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  #rise(waiting: Waiting): void {
    const heap = this.#heap;
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >>> 1;
      const above = heap[parent];
      if (above === undefined || !waiting.isBefore(above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = waiting;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      const right = left + 1;
      let child = heap[left];
      if (child === undefined) break;
      let at = left;
      const other = heap[right];
      if (other?.isBefore(child)) {
        child = other;
        at = right;
      }
      if (!child.isBefore(last)) break;
      heap[index] = child;
      index = at;
    }
    heap[index] = last;
  }
}
