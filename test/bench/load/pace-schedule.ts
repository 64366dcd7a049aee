/**
 * An open loop: pings leave by a schedule, whoever is slow. A lock has one ping in flight; what waits behind it is
 * timed from when it should have left, so that a stall shows in every ping that it held up.
 */
import { type Clock, systemClock } from '../../../proto/clock.js';

/** A lock that a schedule makes send. */
export interface Paced {
  readonly isBusy: boolean;
  readonly latencyMs: number;
  onAck: () => void;
  /** `intendedMs`: when the ping should have left, by the clock that the pace goes by. */
  send(intendedMs: number): void;
}

/** When the ping with this number, counted from 0, is to leave, ms after the first. */
export function dueMs(ping: number, rate: number): number {
  return (ping * 1000) / rate;
}

/** How many pings are to have left by then, the first at 0 ms. */
export function dueCount(afterMs: number, rate: number, count: number): number {
  return Math.min(Math.floor((afterMs * rate) / 1000) + 1, count);
}

/**
 * Sends `count` pings, `rate` a second, by the locks in turn. Resolves with the last acknowledgement.
 *
 * @param told each ping's ms from when it should have left to its acknowledgement
 */
export function pace(
  locks: readonly Paced[],
  count: number,
  rate: number,
  told: (ms: number) => void,
  clock: Pick<Clock, 'after'> = systemClock,
  now: () => number = () => performance.now(),
): Promise<void> {
  const startedAt = now();
  const [due, sent] = [locks.map(() => 0), locks.map(() => 0)];
  let [next, acked] = [0, 0];
  const sendDue = (index: number): void => {
    const lock = locks[index] as Paced;
    const mine = sent[index] ?? 0;
    if (lock.isBusy || mine >= (due[index] ?? 0)) return;
    sent[index] = mine + 1;
    lock.send(startedAt + dueMs(mine * locks.length + index, rate));
  };
  return new Promise((resolve) => {
    for (const [index, lock] of locks.entries())
      lock.onAck = () => {
        acked += 1;
        told(lock.latencyMs);
        if (acked === count) resolve();
        else sendDue(index);
      };
    const turn = (): void => {
      for (const until = dueCount(now() - startedAt, rate, count); next < until; next++) {
        const index = next % locks.length;
        due[index] = (due[index] ?? 0) + 1;
        sendDue(index);
      }
      if (next < count) clock.after(startedAt + dueMs(next, rate) - now(), turn);
    };
    turn();
  });
}
