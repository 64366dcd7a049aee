/**
 * The page's copy of the run's clock: the gateway's time for locks, which runs faster than real time in a
 * demonstration. The page computes ages and count-downs with it. Answers of the gateway set the clock now and then; the
 * speed follows from two of these readings. Reads only the page's own clocks; makes no calls.
 */
import { type Milliseconds, monotonicMs, Seconds, systemClock } from '../../../../proto/clock.js';

/** From two readings that are closer together, the speed can't be computed precisely. */
const MIN_BETWEEN_READINGS = Seconds(1);
/** Below this, the clock runs at the speed of real time: the difference is the network's delay. */
const MIN_SPEED_UP = 1.5;

interface Reading {
  /** The gateway's time, ms since the epoch. */
  readonly runMs: number;
  /** The page's monotonic time. */
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

  /**
   * A wall-clock time, such as that of an attempt to deliver, by the run's clock. Unchanged where both run at the same
   * speed, since they are the same clock of the gateway then.
   *
   * @param nowMs the wall-clock time now
   */
  fromWall(wallMs: number, nowMs: number = systemClock.now(), atMs: Milliseconds = monotonicMs()): number {
    return this.#speed === 1 ? wallMs : this.now(atMs) - (nowMs - wallMs) * this.#speed;
  }

  /** Ms since the epoch; the machine's clock until the first reading. */
  now(atMs: Milliseconds = monotonicMs()): number {
    if (this.#reading === null) return systemClock.now();
    return this.#reading.runMs + (atMs - this.#reading.atMs) * this.#speed;
  }
}

/** The clock of this page. */
export const runClock = new PageRunClock();
