/**
 * Measures the delay of the event loop. Everything runs on one loop: while it is blocked nothing is answered, and a
 * timer is late by that time.
 */
import { type Clock, type Milliseconds, monotonicMs, Seconds, type Timer } from '../../proto/clock.js';
import type { Health } from './health.js';

/** How often the delay is measured. */
const SAMPLE_EVERY = Seconds(0.1);
/** From this delay on the gateway is not ready: locks' keepalives and merchants' timeouts are of this order. */
const TOO_LATE = Seconds(2);
/** After so long without such a delay it is ready again. */
const CALM_AFTER = Seconds(5);
/** {@link WorstDelay} covers so many pieces of this length. */
const PIECES = 6;
const PIECE = Seconds(10);

/** The worst delay of the last minute, in pieces of ten seconds. */
export class WorstDelay {
  readonly #worst = new Array<number>(PIECES).fill(0);
  readonly #monotonic: () => number;
  #piece = 0;

  /** `monotonic` reads ms; another one for tests. */
  constructor(monotonic: () => number = monotonicMs) {
    this.#monotonic = monotonic;
    this.#piece = this.#now();
  }

  note(delay: Milliseconds): void {
    this.#turn();
    const at = this.#piece % PIECES;
    this.#worst[at] = Math.max(this.#worst[at] ?? 0, delay);
  }

  /** The worst delay of the last 50 to 60 s. */
  get ms(): Milliseconds {
    this.#turn();
    return Math.max(...this.#worst);
  }

  #now(): number {
    return Math.floor(this.#monotonic() / PIECE);
  }

  /** Forgets the pieces that are over a minute old. */
  #turn(): void {
    const now = this.#now();
    const passed = Math.min(now - this.#piece, PIECES);
    for (let each = 1; each <= passed; each += 1) this.#worst[(this.#piece + each) % PIECES] = 0;
    this.#piece = now;
  }
}

export interface EventLoopParts {
  /** The wall clock. */
  readonly clock: Clock;
  readonly health: Health;
  /** Called with each measured delay. */
  readonly onDelay: (delay: Milliseconds) => void;
  /** A monotonic reading in ms; another one for tests. */
  readonly monotonic?: () => number;
}

/** Watches the event loop until the returned function is called. */
export function watchEventLoop({ clock, health, onDelay, monotonic = monotonicMs }: EventLoopParts): () => void {
  let timer: Timer;
  let lateAt: number | undefined;
  const arm = (): void => {
    const dueAt = monotonic() + SAMPLE_EVERY;
    timer = clock.after(SAMPLE_EVERY, () => {
      const nowAt = monotonic();
      const delay = Math.max(nowAt - dueAt, 0);
      onDelay(delay);
      if (delay >= TOO_LATE) {
        lateAt = nowAt;
        health.begin('event-loop', `the event loop stood still for ${(delay / 1000).toFixed(1)} s`);
      } else if (lateAt !== undefined && nowAt - lateAt >= CALM_AFTER) {
        lateAt = undefined;
        health.end('event-loop');
      }
      arm();
    });
  };
  arm();
  return () => timer.cancel();
}
