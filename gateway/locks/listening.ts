/**
 * The locks hear of it when the gateway begins to listen and when it ends to: silence counts only between the two
 * (protocol.md §3).
 *
 * A gateway that crashed has told nobody that it ended. The next one tells it for it, as of the moment at which the old
 * one was last seen to run; otherwise the time between would look as if locks had been silent in it.
 */
import type { Clock } from '../../proto/clock.js';
import type { StateRebuilt } from '../events.js';
import type { Ingest, Sender } from '../ingest/ingest.js';
import type { KnownLock, Locks } from './locks.js';

export interface ListeningParts {
  readonly locks: Locks;
  readonly ingest: Ingest;
  /** The run's clock. */
  readonly clock: Clock;
  /** When a gateway on this store was last seen to run, ms since the epoch; null where none ever was. */
  readonly lastRanMs: number | null;
}

/** Loads the locks and begins. To be called once, before anything is taken. Returns whose state was made anew. */
export async function beginListening({
  locks,
  ingest,
  clock,
  lastRanMs,
}: ListeningParts): Promise<readonly StateRebuilt[]> {
  const rebuilt = await locks.load();
  const abandoned = [...locks.all()].filter(({ state }) => state.belief.listeningSinceMs !== null);
  const endedMs = abandoned.reduce((ms, { state }) => Math.max(ms, state.belief.nowMs), lastRanMs ?? 0);
  tell(ingest, abandoned, 'stop', endedMs);
  tell(ingest, locks.all(), 'start', clock.now());
  // Nobody shall read a damaged row any more, so the new ones are on the disk before anything else begins.
  if (rebuilt.length > 0) await ingest.idle();
  return rebuilt;
}

/**
 * The run's clock makes a step, which `take` makes: nobody listened in between, so no silence is counted over it. What
 * is connected is connected anew after it, for the judge alone.
 */
export function listenOverStep(
  { locks, ingest, clock }: Omit<ListeningParts, 'lastRanMs'>,
  connected: Iterable<Sender>,
  take: () => void,
): void {
  tell(ingest, locks.all(), 'stop', clock.now());
  take();
  const atMs = clock.now();
  tell(ingest, locks.all(), 'start', atMs);
  for (const { deviceId, mac, source } of connected)
    ingest.recordEvent(deviceId, mac, { type: 'connect', source, atMs });
}

/** Ends it: what was taken is stored and answered, and no tick is asked for any more. */
export async function endListening({ locks, ingest, clock }: Omit<ListeningParts, 'lastRanMs'>): Promise<void> {
  tell(ingest, locks.all(), 'stop', clock.now());
  await ingest.stop();
  locks.stop();
}

function tell(ingest: Ingest, locks: Iterable<KnownLock>, state: 'start' | 'stop', atMs: number): void {
  for (const { deviceId, mac } of locks) ingest.recordEvent(deviceId, mac, { type: 'gateway', state, atMs });
}
