/**
 * A progress line on stderr, if that is a terminal. The line appears after a second, so that quick commands show none,
 * and is removed at the latest when the process exits.
 */
import { type Milliseconds, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import { isCapturing } from './output.js';
import { cutToWidth } from './text-width.js';

const SHOW_AFTER_MS = Seconds(1);
const REDRAW_INTERVAL_MS: Milliseconds = 250;

/** The line on the screen. A second line would overwrite the first, so it waits until the first ends. */
let displayed: ProgressLine | null = null;

/** One command's progress line, from its construction to `end`. */
export class ProgressLine {
  readonly #text: () => string;
  #timer: Timer | undefined;
  /** Erases the line if it is displayed. */
  readonly #clear = (): void => {
    if (displayed !== this) return;
    displayed = null;
    process.stderr.write('\r\u001b[K');
  };

  /** @param text returns the current text; called at each redraw */
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
    displayed ??= this;
    const room = (process.stderr.columns || 80) - 1;
    if (displayed === this) process.stderr.write(`\r\u001b[K${cutToWidth(this.#text(), room)}`);
    this.#timer = systemClock.after(REDRAW_INTERVAL_MS, () => this.#show());
  }
}
