/**
 * Records for each lock when the gateway starts and stops listening: a lock's silence counts only while the gateway
 * listens (protocol.md §3).
 *
 * A gateway that crashed did not record its stop. The next start records it, as of the last known time at which the
 * crashed gateway ran; otherwise locks would seem to have been silent since then.
 */
import type { Clock } from '../../proto/clock.js';
import type { Ingest, Sender } from '../ingest/ingest.js';
import type { StateRebuilt } from '../lock-events.js';
import type { KnownLock, Locks } from './locks.js';

export interface ListeningParts {
  readonly locks: Locks;
  readonly ingest: Ingest;
  /** The run's clock (wall-clock time, except in a sped-up simulation). */
  readonly clock: Clock;
  /** The last known time at which a gateway ran on this store, ms since the epoch; null if none ever ran. */
  readonly lastRanMs: number | null;
  /** Whether this gateway serves every lock (default); otherwise it serves none at its start. */
  readonly ownsAll?: boolean | undefined;
}

/**
 * Loads the locks and starts listening. Must be called once, before ingest gets anything. Returns the rebuilt states.
 */
export async function startListening({
  locks,
  ingest,
  clock,
  lastRanMs,
  ownsAll = true,
}: ListeningParts): Promise<readonly StateRebuilt[]> {
  // One of several gateways reads a lock's state when the lock connects, or when its gateway is gone (ownership/).
  if (!ownsAll) return [];
  const rebuilt = await locks.load();
  // For these locks the judge's belief says that a gateway is listening: the previous run did not record its stop.
  const withoutStop = [...locks.all()].filter(({ state }) => state.belief.listeningSinceMs !== null);
  // A lock's time (`nowMs`) must not go back, so the stop is not before the latest time that a lock was judged at.
  const stoppedMs = withoutStop.reduce((ms, { state }) => Math.max(ms, state.belief.nowMs), lastRanMs ?? 0);
  recordAll(ingest, withoutStop, 'stop', stoppedMs);
  recordAll(ingest, locks.all(), 'start', clock.now());
  // Rebuilt states must be on disk before anything else starts, so that no damaged row is read again.
  if (rebuilt.length > 0) await ingest.idle();
  return rebuilt;
}

/**
 * Lets the run's clock jump, by calling `makeStep`. Records a stop before and a start after the jump, so that the jump
 * does not count as silence. For the judge, connected locks and phones connect again after the jump.
 */
export function recordClockStep(
  { locks, ingest, clock }: Omit<ListeningParts, 'lastRanMs'>,
  connected: Iterable<Sender>,
  makeStep: () => void,
): void {
  recordAll(ingest, locks.all(), 'stop', clock.now());
  makeStep();
  const atMs = clock.now();
  recordAll(ingest, locks.all(), 'start', atMs);
  for (const { deviceId, mac, source } of connected)
    ingest.recordEvent(deviceId, mac, { type: 'connect', source, atMs });
}

/** Stops listening. Resolves when everything received is stored and answered; no lock is judged late after that. */
export async function stopListening({ locks, ingest, clock }: Omit<ListeningParts, 'lastRanMs'>): Promise<void> {
  recordAll(ingest, locks.all(), 'stop', clock.now());
  await ingest.stop();
  locks.stop();
}

/** Queues an event for each lock: the gateway starts or stops listening. */
function recordAll(ingest: Ingest, locks: Iterable<KnownLock>, state: 'start' | 'stop', atMs: number): void {
  for (const { deviceId, mac } of locks) ingest.recordEvent(deviceId, mac, { type: 'gateway', state, atMs });
}
