/**
 * Sends pings by a schedule, even if acknowledgements are slow (an open loop). A lock has at most one unacknowledged
 * ping; a ping that must wait for the previous one is timed from its scheduled time, so that a stall counts for every
 * ping that it delays.
 */
import { type Clock, systemClock } from '../../../proto/clock.js';

/** A lock that sends by a schedule. */
export interface PacedLock {
  /** Whether a ping is not acknowledged yet. */
  readonly isBusy: boolean;
  /** From the scheduled time of the last ping to its acknowledgement. */
  readonly latencyMs: number;
  onAck: () => void;
  /** Sends a ping. `scheduledMs` is its scheduled time, by the clock of the schedule. */
  send(scheduledMs: number): void;
}

/** The scheduled time of the ping with this number (from 0), ms after the first. */
export function dueMs(ping: number, rate: number): number {
  return (ping * 1000) / rate;
}

/** How many pings are due `afterMs` after the first one, at most `count`. */
export function dueCount(afterMs: number, rate: number, count: number): number {
  return Math.min(Math.floor((afterMs * rate) / 1000) + 1, count);
}

/**
 * Sends `count` pings, `rate` a second, from the locks in turn. Resolves at the last acknowledgement.
 *
 * @param onAck called for each ping with the ms from its scheduled time to its acknowledgement
 */
export function sendBySchedule(
  locks: readonly PacedLock[],
  count: number,
  rate: number,
  onAck: (ms: number) => void,
  clock: Pick<Clock, 'after'> = systemClock,
  now: () => number = () => performance.now(),
): Promise<void> {
  const startedAt = now();
  // For each lock: how many of its pings are due, and how many were sent.
  const [dueCounts, sentCounts] = [locks.map(() => 0), locks.map(() => 0)];
  let [nextPing, ackedPings] = [0, 0];
  const sendDue = (index: number): void => {
    const lock = locks[index] as PacedLock;
    const sentByLock = sentCounts[index] ?? 0;
    if (lock.isBusy || sentByLock >= (dueCounts[index] ?? 0)) return;
    sentCounts[index] = sentByLock + 1;
    lock.send(startedAt + dueMs(sentByLock * locks.length + index, rate));
  };
  return new Promise((resolve) => {
    for (const [index, lock] of locks.entries())
      lock.onAck = () => {
        ackedPings += 1;
        onAck(lock.latencyMs);
        if (ackedPings === count) resolve();
        else sendDue(index);
      };
    const sendAllDue = (): void => {
      for (const until = dueCount(now() - startedAt, rate, count); nextPing < until; nextPing++) {
        const index = nextPing % locks.length;
        dueCounts[index] = (dueCounts[index] ?? 0) + 1;
        sendDue(index);
      }
      if (nextPing < count) clock.after(startedAt + dueMs(nextPing, rate) - now(), sendAllDue);
    };
    sendAllDue();
  });
}
