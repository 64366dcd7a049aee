/** A time as its age, which stays true while it is shown. A pointer that rests on it shows the date. */

import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Seconds, systemClock } from '../../../../proto/clock.js';
import { runClock } from '../app/run-clock.js';
import { repeat } from './repeat.js';
import { ageText, localTimeText } from './time-text.js';

/** The present time, ms since the epoch, renewed this often. */
export function useNow(everyMs: number = Seconds(1)): number {
  const [nowMs, setNowMs] = useState(() => runClock.now());
  useEffect(() => repeat(everyMs, () => setNowMs(runClock.now())), [everyMs]);
  return nowMs;
}

interface AgeProps {
  readonly date: string | null;
  /** The clock that made the date: that of the run, or the wall clock (deliveries, sessions, keys). */
  readonly clock?: 'run' | 'wall';
}

export function Age({ date, clock = 'run' }: AgeProps): JSX.Element {
  useNow(Seconds(5));
  if (date === null) return <span class="hint">never</span>;
  // The gateway's clock can't have made a date in the future, so the page's copy of that clock is a little behind.
  const nowMs = clock === 'run' ? Math.max(runClock.now(), Date.parse(date)) : systemClock.now();
  return (
    <time dateTime={date} title={localTimeText(date)}>
      {ageText(Date.parse(date), nowMs)}
    </time>
  );
}
