/** A time as its age, which stays true while it is shown. A pointer that rests on it shows the date. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Seconds, systemClock } from '../../../../proto/clock.js';
import { repeat } from './repeat.js';
import { ageText, localTimeText } from './time-text.js';

/** The present time, ms since the epoch, renewed this often. */
export function useNow(everyMs: number = Seconds(1)): number {
  const [nowMs, setNowMs] = useState(systemClock.now);
  useEffect(() => repeat(everyMs, () => setNowMs(systemClock.now())), [everyMs]);
  return nowMs;
}

export function Age({ date }: { readonly date: string | null }): JSX.Element {
  const nowMs = useNow(Seconds(5));
  if (date === null) return <span class="hint">never</span>;
  return (
    <time dateTime={date} title={localTimeText(date)}>
      {ageText(Date.parse(date), nowMs)}
    </time>
  );
}
