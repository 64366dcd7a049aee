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
  const runMs = useNow(Seconds(5));
  const nowMs = clock === 'run' ? runMs : systemClock.now();
  if (date === null) return <span class="hint">never</span>;
  return (
    <time dateTime={date} title={localTimeText(date)}>
      {ageText(Date.parse(date), nowMs)}
    </time>
  );
}
