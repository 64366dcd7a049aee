/**
 * A progress line on a terminal's stderr. It appears after a second, and is removed when the process exits at the
 * latest.
 */
import { type Milliseconds, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import { isCapturing } from './output.js';
import { cutToWidth } from './text-width.js';

const SHOW_AFTER_MS = Seconds(1);
const REDRAW_INTERVAL_MS: Milliseconds = 250;

/** Only one line is displayed at a time: two would overwrite each other. */
let shown: ProgressLine | null = null;

export class ProgressLine {
  readonly #text: () => string;
  #timer: Timer | undefined;
  readonly #clear = (): void => {
    if (shown !== this) return;
    shown = null;
    process.stderr.write('\r\u001b[K');
  };

  /** @param text returns the current text */
  constructor(text: () => string) {
    this.#text = text;
    if (!process.stderr.isTTY || process.env.TERM === 'dumb' || isCapturing()) return;
    this.#timer = systemClock.after(SHOW_AFTER_MS, () => this.#show());
    process.once('exit', this.#clear);
  }

  /** Removes the line. */
  end(): void {
    this.#timer?.cancel();
    process.off('exit', this.#clear);
    this.#clear();
  }

  #show(): void {
    shown ??= this;
    const room = (process.stderr.columns || 80) - 1;
    if (shown === this) process.stderr.write(`\r\u001b[K${cutToWidth(this.#text(), room)}`);
    this.#timer = systemClock.after(REDRAW_INTERVAL_MS, () => this.#show());
  }
}
