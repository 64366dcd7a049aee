/**
 * The time of locks as the page knows it: the gateway's clock of the run, which a demonstration lets run faster than
 * the wall clock. Ages and count-downs are by this clock. It is set by what the gateway says now and then; two readings
 * show how fast it runs. Pure, but for the page's monotonic time.
 */
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../../proto/clock.js';

/** Two readings closer together say too little about the speed. */
const MIN_BETWEEN_READINGS = Seconds(1);
/** Below this, the clock runs at the speed of real time: the difference is the network's delay. */
const MIN_SPEED_UP = 1.5;

interface Reading {
  readonly runMs: number;
  readonly atMs: Milliseconds;
}

export class PageRunClock {
  #reading: Reading | null = null;
  #speed = 1;

  /** Takes the gateway's time. @param atMs the page's monotonic time */
  set(runMs: number, atMs: Milliseconds = monotonicMs()): void {
    const before = this.#reading;
    if (before !== null && atMs - before.atMs >= MIN_BETWEEN_READINGS) {
      const speed = (runMs - before.runMs) / (atMs - before.atMs);
      this.#speed = speed < MIN_SPEED_UP ? 1 : Math.round(speed);
    }
    this.#reading = { runMs, atMs };
  }

  /** Ms since the epoch; the machine's clock until the gateway has said its time. */
  now(atMs: Milliseconds = monotonicMs()): number {
    if (this.#reading === null) return systemClock.now();
    return this.#reading.runMs + (atMs - this.#reading.atMs) * this.#speed;
  }
}

/** The clock of this page. */
export const runClock = new PageRunClock();
