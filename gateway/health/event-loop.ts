/**
 * Measures the delay of the event loop, by how late a timer fires. Most of the gateway runs on this loop: while it is
 * blocked, no request is answered.
 */
import { type Clock, type Milliseconds, monotonicMs, Seconds, type Timer } from '../../proto/clock.js';
import type { Health } from './health.js';

/** How often the delay is measured. */
const SAMPLE_INTERVAL = Seconds(0.1);
/** From this delay on the gateway is not ready: locks' keepalives and merchants' timeouts are of this magnitude. */
const NOT_READY_DELAY = Seconds(2);
/** The gateway is ready again after this time without such a delay. */
const READY_AGAIN_AFTER = Seconds(5);
/** {@link WorstDelay} covers this many slots of this duration. */
const SLOT_COUNT = 6;
const SLOT_DURATION = Seconds(10);

/** The worst delay of the last minute, in slots of ten seconds. */
export class WorstDelay {
  readonly #worstBySlot = new Array<number>(SLOT_COUNT).fill(0);
  readonly #monotonic: () => number;
  #slot = 0;

  /** `monotonic` reads a monotonic clock in ms; tests pass their own. */
  constructor(monotonic: () => number = monotonicMs) {
    this.#monotonic = monotonic;
    this.#slot = this.#currentSlot();
  }

  note(delay: Milliseconds): void {
    this.#dropOldSlots();
    const index = this.#slot % SLOT_COUNT;
    this.#worstBySlot[index] = Math.max(this.#worstBySlot[index] ?? 0, delay);
  }

  /** The worst delay of the last 50 to 60 s. */
  get ms(): Milliseconds {
    this.#dropOldSlots();
    return Math.max(...this.#worstBySlot);
  }

  #currentSlot(): number {
    return Math.floor(this.#monotonic() / SLOT_DURATION);
  }

  /** Clears the slots that are over a minute old. */
  #dropOldSlots(): void {
    const currentSlot = this.#currentSlot();
    const passedSlots = Math.min(currentSlot - this.#slot, SLOT_COUNT);
    for (let each = 1; each <= passedSlots; each += 1) this.#worstBySlot[(this.#slot + each) % SLOT_COUNT] = 0;
    this.#slot = currentSlot;
  }
}

export interface EventLoopParts {
  /** The wall clock. */
  readonly clock: Clock;
  readonly health: Health;
  /** Called with each measured delay. */
  readonly onDelay: (delay: Milliseconds) => void;
  /** Reads a monotonic clock in ms; tests pass their own. */
  readonly monotonic?: () => number;
}

/** Watches the event loop until the returned function is called. */
export function watchEventLoop({ clock, health, onDelay, monotonic = monotonicMs }: EventLoopParts): () => void {
  let timer: Timer;
  let lastLateAtMs: number | undefined;
  const scheduleSample = (): void => {
    const dueMs = monotonic() + SAMPLE_INTERVAL;
    timer = clock.after(SAMPLE_INTERVAL, () => {
      const nowMs = monotonic();
      const delay = Math.max(nowMs - dueMs, 0);
      onDelay(delay);
      if (delay >= NOT_READY_DELAY) {
        lastLateAtMs = nowMs;
        health.begin('event-loop', `the event loop was blocked for ${(delay / 1000).toFixed(1)} s`);
      } else if (lastLateAtMs !== undefined && nowMs - lastLateAtMs >= READY_AGAIN_AFTER) {
        lastLateAtMs = undefined;
        health.end('event-loop');
      }
      scheduleSample();
    });
  };
  scheduleSample();
  return () => timer.cancel();
}
