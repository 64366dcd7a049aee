/** Measures how many uplinks per second the gateway has stored in the last minute, for the operators' status. */
import { monotonicMs, Seconds } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';

const WINDOW_SECONDS = 60;

export class PingRate {
  readonly #nowMs: () => number;
  readonly #startedAtMs: number;
  /** Uplinks of each second of the window; the second's number modulo the window is its place. */
  readonly #counts = new Array<number>(WINDOW_SECONDS).fill(0);
  /** The second of the newest count. */
  #second: number;

  /** @param nowMs a monotonic time in ms */
  constructor(events: GatewayEvents, nowMs: () => number = monotonicMs) {
    this.#nowMs = nowMs;
    this.#startedAtMs = nowMs();
    this.#second = this.#secondNow();
    events.on('stored', ({ uplinks }) => this.#add(uplinks.length));
  }

  /** Uplinks per second, on average over the last minute, or over the time since the start if that is shorter. */
  perSecond(): number {
    this.#moveToNow();
    const stored = this.#counts.reduce((sum, count) => sum + count, 0);
    const seconds = (this.#nowMs() - this.#startedAtMs) / Seconds(1);
    return stored / Math.min(WINDOW_SECONDS, Math.max(1, seconds));
  }

  #add(uplinks: number): void {
    this.#moveToNow();
    const place = this.#second % WINDOW_SECONDS;
    this.#counts[place] = (this.#counts[place] ?? 0) + uplinks;
  }

  /** Empties the places of the seconds since the newest count. */
  #moveToNow(): void {
    const now = this.#secondNow();
    const from = Math.max(this.#second + 1, now - WINDOW_SECONDS + 1);
    for (let second = from; second <= now; second += 1) this.#counts[second % WINDOW_SECONDS] = 0;
    this.#second = now;
  }

  #secondNow(): number {
    return Math.floor(this.#nowMs() / Seconds(1));
  }
}
