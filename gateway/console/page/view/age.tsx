/** A time as its age, which stays true while it is shown. A pointer that rests on it shows the date. */

import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Milliseconds, Seconds, systemClock } from '../../../../proto/clock.js';
import { runClock } from '../app/run-clock.js';
import { repeat } from './repeat.js';
import { ageText, timeText } from './time-text.js';

/** Renews many ages at the same moments, so that a screen full of them is drawn in one frame. */
class Ticker {
  readonly #every: Milliseconds;
  readonly #renewals = new Set<(nowMs: number) => void>();
  #stop: () => void = () => undefined;

  constructor(every: Milliseconds) {
    this.#every = every;
  }

  /** Calls `renew` with the run's time at each tick. Returns a function that ends this. */
  add(renew: (nowMs: number) => void): () => void {
    if (this.#renewals.size === 0) this.#stop = repeat(this.#every, () => this.#tick());
    this.#renewals.add(renew);
    return () => {
      this.#renewals.delete(renew);
      if (this.#renewals.size === 0) this.#stop();
    };
  }

  #tick(): void {
    const nowMs = runClock.now();
    for (const renew of this.#renewals) renew(nowMs);
  }
}

const EACH_SECOND = new Ticker(Seconds(1));
const EACH_FIVE_SECONDS = new Ticker(Seconds(5));

/** The present time of the run's clock, ms since the epoch, renewed each second unless a ticker says otherwise. */
export function useNow(ticker = EACH_SECOND): number {
  const [nowMs, setNowMs] = useState(() => runClock.now());
  useEffect(() => ticker.add(setNowMs), [ticker]);
  return nowMs;
}

interface AgeProps {
  readonly date: string | null;
  /** The clock that made the date: that of the run, or the wall clock (deliveries, sessions, keys). */
  readonly clock?: 'run' | 'wall';
}

export function Age({ date, clock = 'run' }: AgeProps): JSX.Element {
  // Only so that the age is drawn again every five seconds.
  useNow(EACH_FIVE_SECONDS);
  if (date === null) return <span class="hint">never</span>;
  // The gateway's clock can't have made a date in the future, so the page's copy of that clock is a little behind.
  const nowMs = clock === 'run' ? Math.max(runClock.now(), Date.parse(date)) : systemClock.now();
  return (
    <time dateTime={date} title={timeText(date)}>
      {ageText(Date.parse(date), nowMs)}
    </time>
  );
}
