/** A line on stderr that says how far something is, for a terminal, once it has lasted over a second. */
import { type Milliseconds, Seconds, systemClock, type Timer } from '../proto/clock.js';

const SHOWN_AFTER = Seconds(1);
const RENEWED_EVERY: Milliseconds = 250;

export class ProgressLine {
  readonly #text: () => string;
  #timer: Timer | undefined;
  #isShown = false;

  /** @param text what to show, asked for each time */
  constructor(text: () => string) {
    this.#text = text;
    if (process.stderr.isTTY) this.#timer = systemClock.after(SHOWN_AFTER, () => this.#show());
  }

  /** Takes the line away. */
  end(): void {
    this.#timer?.cancel();
    if (this.#isShown) process.stderr.write('\r\u001b[K');
  }

  #show(): void {
    this.#isShown = true;
    const room = (process.stderr.columns || 80) - 1;
    process.stderr.write(`\r\u001b[K${this.#text().slice(0, room)}`);
    this.#timer = systemClock.after(RENEWED_EVERY, () => this.#show());
  }
}
