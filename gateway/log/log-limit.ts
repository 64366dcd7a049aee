/**
 * Limits the log lines of one kind in each time window: strangers can cause any number of refusals, and must not fill
 * the disk. Omitted lines are counted, and the count is reported when the window ends.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';

const WINDOW_DURATION: Milliseconds = Seconds(10);
const MAX_LINES_PER_WINDOW = 10;

/** The limit of one kind of log line. */
export class LogLimit {
  readonly #clock: Clock;
  readonly #onLeftOut: (count: number) => void;
  /** The lines of this window, written or left out. */
  #lines = 0;
  #timer: Timer | undefined;

  /** `onLeftOut` is called at the end of a window in which lines were left out. `clock` is the wall clock. */
  constructor(clock: Clock, onLeftOut: (count: number) => void) {
    this.#clock = clock;
    this.#onLeftOut = onLeftOut;
  }

  /** Counts one more line, and returns whether it may be written. A window starts with its first line. */
  take(): boolean {
    this.#lines += 1;
    this.#timer ??= this.#clock.after(WINDOW_DURATION, () => this.end());
    return this.#lines <= MAX_LINES_PER_WINDOW;
  }

  /** Ends the window now. */
  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    // Negative if the limit was not reached.
    const leftOut = this.#lines - MAX_LINES_PER_WINDOW;
    this.#lines = 0;
    if (leftOut > 0) this.#onLeftOut(leftOut);
  }
}
