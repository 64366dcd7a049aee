/**
 * The run's clock of a gateway (protocol.md §3, Sped-up runs), which the store keeps.
 */
import { type Clock, RunClock, Seconds, systemClock, type Timer } from '../proto/clock.js';
import type { Store } from './store/store.js';

/** How often the store is told where the run's clock stands. */
const NOTE_EVERY = Seconds(5);
const CLOCK_FACT = 'run-clock-ms';

/** The run's clock, noted in the store until it is stopped. */
export interface KeptClock {
  readonly clock: Clock;
  /** Where it stood when it was last seen to run, before this start; null in a new store. */
  readonly lastRanMs: number | null;
  /** Notes it a last time; nothing of it is left when this resolves. */
  stop(): Promise<void>;
}

/**
 * The run's clock goes on from where the store last saw it, and never back: not after a restart, not after somebody set
 * the machine's clock back, not when a sped-up run is followed by one at speed 1.
 *
 * @param wallClock says when it's time for the next note
 */
export async function startRunClock(
  store: Pick<Store, 'readFact' | 'readLastReceivedAtMs' | 'writeFact'>,
  speed: number,
  wallClock: Clock = systemClock,
): Promise<KeptClock> {
  const noted = Number((await store.readFact(CLOCK_FACT)) ?? 0);
  const received = (await store.readLastReceivedAtMs()) ?? 0;
  const clock = new RunClock(Math.max(noted, received, wallClock.now()), speed);
  const note = (): Promise<void> => store.writeFact(CLOCK_FACT, String(clock.now()));
  await note();
  let timer: Timer | undefined;
  let stopped = false;
  const keepNoting = (): void => {
    // A note that was under way when the clock was stopped ends here too.
    if (stopped) return;
    // Should the store fail, the ingest says so; the next note is tried all the same.
    timer = wallClock.after(NOTE_EVERY, () => void note().then(keepNoting, keepNoting));
  };
  keepNoting();
  return {
    clock,
    lastRanMs: Math.max(noted, received) || null,
    stop: async () => {
      stopped = true;
      timer?.cancel();
      await note().catch(() => undefined);
    },
  };
}
