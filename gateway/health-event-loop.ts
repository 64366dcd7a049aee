/**
 * How late the event loop is. Everything here runs on one loop, so while it stands still nobody is answered, and the
 * lateness of a timer is that time.
 */
import { type Clock, type Milliseconds, monotonicMs, Seconds, type Timer } from '../proto/clock.js';
import type { Health } from './health.js';

/** How often it is looked at. */
const SAMPLE_EVERY = Seconds(0.1);
/** From this lateness on the gateway is not ready: a lock's keepalive and a merchant's patience are of its size. */
const TOO_LATE = Seconds(2);
/** So long without such a lateness, and it is ready again. */
const CALM_AFTER = Seconds(5);

export interface EventLoopParts {
  /** The wall's clock. */
  readonly clock: Clock;
  readonly health: Health;
  /** Told each lateness, in ms. */
  readonly onDelay: (delay: Milliseconds) => void;
  /** A monotonic reading in ms; another one for tests. */
  readonly monotonic?: () => number;
}

/** Watches until the function that it returns is called. */
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
