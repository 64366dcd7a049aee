/**
 * Records for each lock when the gateway starts and stops listening: silence counts only in between (protocol.md §3).
 *
 * A gateway that crashed did not record its stop. The next one does, as of the moment at which the old one was last
 * seen running; otherwise locks would seem to have been silent in the time between.
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
  /** When a gateway on this store was last seen running, ms since the epoch; null where none ever was. */
  readonly lastRanMs: number | null;
}

/** Loads the locks and starts listening. To be called once, before anything is taken. Returns the rebuilt states. */
export async function beginListening({
  locks,
  ingest,
  clock,
  lastRanMs,
}: ListeningParts): Promise<readonly StateRebuilt[]> {
  const rebuilt = await locks.load();
  const abandoned = [...locks.all()].filter(({ state }) => state.belief.listeningSinceMs !== null);
  const endedMs = abandoned.reduce((ms, { state }) => Math.max(ms, state.belief.nowMs), lastRanMs ?? 0);
  recordAll(ingest, abandoned, 'stop', endedMs);
  recordAll(ingest, locks.all(), 'start', clock.now());
  // No damaged row must be read again, so the rebuilt states are on disk before anything else starts.
  if (rebuilt.length > 0) await ingest.idle();
  return rebuilt;
}

/**
 * The run's clock makes a step, by `take`. No silence is counted over it, as if nobody had listened in between. For the
 * judge, what is connected connects again afterwards.
 */
export function listenOverStep(
  { locks, ingest, clock }: Omit<ListeningParts, 'lastRanMs'>,
  connected: Iterable<Sender>,
  take: () => void,
): void {
  recordAll(ingest, locks.all(), 'stop', clock.now());
  take();
  const atMs = clock.now();
  recordAll(ingest, locks.all(), 'start', atMs);
  for (const { deviceId, mac, source } of connected)
    ingest.recordEvent(deviceId, mac, { type: 'connect', source, atMs });
}

/** Stops listening: what was taken is stored and answered, and no more ticks are requested. */
export async function endListening({ locks, ingest, clock }: Omit<ListeningParts, 'lastRanMs'>): Promise<void> {
  recordAll(ingest, locks.all(), 'stop', clock.now());
  await ingest.stop();
  locks.stop();
}

function recordAll(ingest: Ingest, locks: Iterable<KnownLock>, state: 'start' | 'stop', atMs: number): void {
  for (const { deviceId, mac } of locks) ingest.recordEvent(deviceId, mac, { type: 'gateway', state, atMs });
}
