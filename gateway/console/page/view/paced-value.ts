/** A value that is passed on at most once in a span of time: the first change at once, later ones together. */
import { type Clock, type Milliseconds, systemClock, type Timer } from '../../../../proto/clock.js';

/** Passes on the newest value, but not sooner than `pause` after the one before. */
export class PacedValue<Value> {
  readonly #pause: Milliseconds;
  readonly #pass: (value: Value) => void;
  readonly #clock: Clock;
  /** Runs while the pause after a passed value lasts. */
  #timer: Timer | null = null;
  #newest: Value;
  #passed: Value;

  /** @param first counts as passed on long ago */
  constructor(first: Value, pause: Milliseconds, pass: (value: Value) => void, clock: Clock = systemClock) {
    [this.#newest, this.#passed, this.#pause, this.#pass, this.#clock] = [first, first, pause, pass, clock];
  }

  set(value: Value): void {
    this.#newest = value;
    if (this.#timer === null) this.#passNewest();
  }

  /** Passes nothing on any more. */
  stop(): void {
    this.#timer?.cancel();
  }

  #passNewest(): void {
    this.#timer = null;
    if (this.#newest === this.#passed) return;
    this.#passed = this.#newest;
    this.#timer = this.#clock.after(this.#pause, () => this.#passNewest());
    this.#pass(this.#newest);
  }
}
