/**
 * The only file that reads the machine's clock or sets timers. All other code that needs the time takes a {@link
 * Clock}. So a test can control the time, a simulation can run a year in a second, and a demo can run at 60 × speed.
 */

import type { performance as nodePerformance } from 'node:perf_hooks';

/** A time span in milliseconds. `Seconds`, `Minutes` … make one, so that the code has no number like 30000. */
export type Milliseconds = number;

export const Seconds = (count: number): Milliseconds => count * 1000;
export const Minutes = (count: number): Milliseconds => count * 60_000;
export const Hours = (count: number): Milliseconds => count * 3_600_000;
export const Days = (count: number): Milliseconds => count * 86_400_000;

/** A pending callback. Cancelling it twice, or after it has run, does nothing. */
export interface Timer {
  cancel(): void;
}

/** Gives the current time, and calls back later. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Calls `callback` once, `delay` from now; a delay of 0 or less means as soon as possible after this call. */
  after(delay: Milliseconds, callback: () => void): Timer;
}

/**
 * Node's timers fire at once if the delay does not fit a signed 32-bit integer, so a longer wait uses several timers.
 */
const MAX_TIMEOUT: Milliseconds = 2 ** 31 - 1;

function systemAfter(delay: Milliseconds, callback: () => void): Timer {
  let handle: NodeJS.Timeout;
  const startTimer = (remaining: Milliseconds): void => {
    const part = Math.min(remaining, MAX_TIMEOUT);
    handle = setTimeout(() => (remaining > part ? startTimer(remaining - part) : callback()), Math.max(part, 0));
  };
  startTimer(delay);
  return { cancel: () => clearTimeout(handle) };
}

/** The machine's clock: wall-clock time. */
export const systemClock: Clock = Object.freeze({ now: () => Date.now(), after: systemAfter });

/**
 * A monotonic time in milliseconds, for measuring how long something took. It has no relation to the date, and setting
 * the machine's clock does not affect it.
 */
export function monotonicMs(): number {
  return performance.now();
}

/** How long the event loop has been idle and active so far, in ms. */
export interface LoopTime {
  readonly idle: number;
  readonly active: number;
}

/** The event loop's time up to now. The difference between two results shows how busy it was in between. */
export function loopTime(): LoopTime {
  // The types of browsers, where the console's page uses other functions of this file, lack this one.
  return (performance as unknown as typeof nodePerformance).eventLoopUtilization();
}

/** Calls back after pending I/O events, so that everything that has arrived by then can be committed together. */
export function afterThisTurn(callback: () => void): void {
  setImmediate(callback);
}

/**
 * A clock that starts at `startMs` and runs `speed` times as fast as real time. It is based on the monotonic clock, so
 * it never goes back. A simulation that runs faster than real time uses it (protocol.md §3).
 */
export class RunClock implements Clock {
  readonly speed: number;
  readonly #startMs: number;
  readonly #startedAt: number;

  constructor(startMs: number, speed = 1) {
    this.speed = speed;
    this.#startMs = startMs;
    this.#startedAt = monotonicMs();
  }

  now(): number {
    return Math.floor(this.#startMs + (monotonicMs() - this.#startedAt) * this.speed);
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    return systemAfter(delay / this.speed, callback);
  }
}

interface PendingCallback {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that only {@link ManualClock.advance} moves. Callbacks run in order of their time, then of registration. */
export class ManualClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #pending = new Set<PendingCallback>();

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    const entry: PendingCallback = { dueMs: this.#nowMs + Math.max(delay, 0), order: this.#order++, callback };
    this.#pending.add(entry);
    return { cancel: () => void this.#pending.delete(entry) };
  }

  /** The number of pending callbacks, so that tests can check that none is left. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Whether a callback is due at exactly this time, ms since the epoch. */
  isDueAt(atMs: number): boolean {
    return [...this.#pending].some(({ dueMs }) => dueMs === atMs);
  }

  /** When the next callback is due, ms since the epoch; undefined if none is pending. */
  get nextDueMs(): number | undefined {
    return this.#next()?.dueMs;
  }

  /**
   * Moves the time forward by `span` and runs each callback that becomes due, at its own time, including callbacks that
   * are added meanwhile. A negative span does nothing.
   */
  advance(span: Milliseconds): void {
    const target = this.#nowMs + span;
    for (let next = this.#next(); next !== undefined && next.dueMs <= target; next = this.#next()) {
      this.#pending.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    // A callback may itself have advanced the clock.
    this.#nowMs = Math.max(this.#nowMs, target);
  }

  #next(): PendingCallback | undefined {
    let first: PendingCallback | undefined;
    for (const entry of this.#pending) {
      if (
        first === undefined ||
        entry.dueMs < first.dueMs ||
        (entry.dueMs === first.dueMs && entry.order < first.order)
      )
        first = entry;
    }
    return first;
  }
}
