/**
 * Time enters here and nowhere else. Everything that waits or stamps takes a {@link Clock}, so that a test turns the
 * hands itself, a simulation runs a year in a second, and a demo lives at 60 × speed.
 */

/** A span in milliseconds, made by the functions below so that no bare 30000 stands in the code. */
export type Milliseconds = number;

export const Seconds = (count: number): Milliseconds => count * 1000;
export const Minutes = (count: number): Milliseconds => count * 60_000;
export const Hours = (count: number): Milliseconds => count * 3_600_000;
export const Days = (count: number): Milliseconds => count * 86_400_000;

/** A wait that can be called off; calling it off twice, or after it ran, does nothing. */
export interface Timer {
  cancel(): void;
}

/** What time it is, and a way to be called later. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Calls `callback` once, `delay` from now; a delay of 0 or less means as soon as possible, never at once. */
  after(delay: Milliseconds, callback: () => void): Timer;
}

/** Node's timers hold a signed 32-bit count of ms and fire at once beyond it, so a longer wait is made of pieces. */
const LONGEST_TIMEOUT: Milliseconds = 2 ** 31 - 1;

function systemAfter(delay: Milliseconds, callback: () => void): Timer {
  let handle: NodeJS.Timeout;
  const arm = (left: Milliseconds): void => {
    const piece = Math.min(left, LONGEST_TIMEOUT);
    handle = setTimeout(() => (left > piece ? arm(left - piece) : callback()), Math.max(piece, 0));
  };
  arm(delay);
  return { cancel: () => clearTimeout(handle) };
}

/** The clock on the wall. */
export const systemClock: Clock = Object.freeze({ now: () => Date.now(), after: systemAfter });

/**
 * A monotonic reading in milliseconds, for measuring how long something took. It has no relation to the date and is
 * not touched by someone who sets the machine's clock.
 */
export function monotonicMs(): number {
  return performance.now();
}

/** How long the event loop had nothing to do so far, and how long it had something; both in ms. */
export interface LoopTime {
  readonly idle: number;
  readonly active: number;
}

/** The event loop's time up to now, for measuring how busy it is: the difference of two readings counts. */
export function loopTime(): LoopTime {
  return performance.eventLoopUtilization();
}

/** Lets the event loop turn once, so that what has arrived meanwhile can be taken together (group commit). */
export function afterThisTurn(callback: () => void): void {
  setImmediate(callback);
}

/**
 * A clock that runs `speed` times as fast as the wall's, from `startMs`. It rests on the monotonic clock and so never
 * goes back. It is the run's clock of sped-up runs (protocol.md §3).
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

interface Waiting {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock whose hands are turned by hand. Callbacks run in order of their time, then of their registration. */
export class ManualClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #waiting = new Set<Waiting>();

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delay: Milliseconds, callback: () => void): Timer {
    const entry: Waiting = { dueMs: this.#nowMs + Math.max(delay, 0), order: this.#order++, callback };
    this.#waiting.add(entry);
    return { cancel: () => void this.#waiting.delete(entry) };
  }

  /** How many callbacks wait: for tests that nothing is left behind. */
  get pending(): number {
    return this.#waiting.size;
  }

  /** When the next callback is due, ms since the epoch; undefined where none waits. */
  get nextDueMs(): number | undefined {
    return this.#next()?.dueMs;
  }

  /**
   * Turns the hands forward by `span`, running each callback at its own time, those that it starts included. They
   * never go back: a negative span does nothing.
   */
  advance(span: Milliseconds): void {
    const target = this.#nowMs + span;
    for (let next = this.#next(); next !== undefined && next.dueMs <= target; next = this.#next()) {
      this.#waiting.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    // A callback may itself have turned them further.
    this.#nowMs = Math.max(this.#nowMs, target);
  }

  #next(): Waiting | undefined {
    let first: Waiting | undefined;
    for (const entry of this.#waiting) {
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
