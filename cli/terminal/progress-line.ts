/**
 * A progress line on a terminal's stderr, shown after a second. It is removed however the process ends.
 */
import { type Milliseconds, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import { isListenedTo } from './output.js';
import { cutToWidth } from './text-width.js';

const SHOWN_AFTER = Seconds(1);
const RENEWED_EVERY: Milliseconds = 250;

/** The line that is displayed; two would overwrite each other. */
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
    if (!process.stderr.isTTY || process.env.TERM === 'dumb' || isListenedTo()) return;
    this.#timer = systemClock.after(SHOWN_AFTER, () => this.#show());
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
    this.#timer = systemClock.after(RENEWED_EVERY, () => this.#show());
  }
}
