/**
 * The end of another gateway's epoch: of its claim of a slot, a part of the log. An epoch is a random number of the
 * process, and every write joins a row with it (fence.ts).
 */
import { randomBytes } from 'node:crypto';
import { Seconds, systemClock } from '../../../proto/clock.js';
import type { Connections, WatchedClient } from './connections/connections.js';

/** How long a connection may hold the row of an epoch that is to end. */
const PATIENCE = Seconds(1);
const RANDOM_BYTES = 7;
/** Whole numbers of this many bits are exact in JavaScript. */
const RANDOM_BITS = 53n;

/** A number that no claim had or will have: 53 random bits. */
export function randomNumber(): number {
  const bits = BigInt(`0x${randomBytes(RANDOM_BYTES).toString('hex')}`);
  return Number(bits & ((1n << RANDOM_BITS) - 1n));
}

/** Another gateway's slot, as it was read. */
export interface EpochToEnd {
  readonly slot: number;
  readonly epoch: number;
  /** Its last beat, as PostgreSQL's text, which has all digits of the time; null if it never had one. */
  readonly at: string | null;
}

/**
 * Ends an epoch, if its beat is still the one that was seen: nothing is stored under it any more, and what it owned may
 * be claimed. The lock of the row waits for all its writes (fence.ts). A connection that holds the row for longer than
 * a second is ended: its process may be gone without a sign to the database, which would notice only after two hours.
 *
 * @param holder the connection that waits for the row, so that it can do nothing else meanwhile
 * @returns whether it ended the epoch; false if the gateway has beaten since, or the epoch had ended already
 */
export async function endEpoch(
  { read }: Pick<Connections, 'read'>,
  holder: WatchedClient,
  other: EpochToEnd,
): Promise<boolean> {
  const pid = (await holder.sql.get<{ pid: number }>('SELECT pg_backend_pid() AS pid'))?.pid ?? 0;
  let isEnded = false;
  const endBlockers = (): void => {
    if (isEnded) return;
    const end = 'SELECT pg_terminate_backend(pid) FROM unnest(pg_blocking_pids(@pid)) AS pid';
    void read
      .all(end, { pid })
      // Ending it may not be allowed; then the wait ends with an error, and the caller tries again.
      .catch(() => undefined)
      .then(() => systemClock.after(PATIENCE, endBlockers));
  };
  const timer = systemClock.after(PATIENCE, endBlockers);
  try {
    return await endUnblocked(holder, other);
  } finally {
    isEnded = true;
    timer.cancel();
  }
}

async function endUnblocked(holder: WatchedClient, { slot, epoch, at }: EpochToEnd): Promise<boolean> {
  const { sql } = holder;
  const values = { slot, epoch, at, ended: randomNumber() };
  await sql.run('BEGIN');
  try {
    await sql.get('SELECT 1 AS one FROM node WHERE slot = @slot AND epoch = @epoch FOR UPDATE', values);
    const isSame = await sql.get(
      `SELECT 1 AS one FROM node n LEFT JOIN node_beat b ON b.slot = n.slot
       WHERE n.slot = @slot AND n.epoch = @epoch AND b.at IS NOT DISTINCT FROM @at::timestamptz`,
      values,
    );
    if (isSame !== undefined) {
      await sql.run(
        `INSERT INTO ended_epoch (epoch, slot, last_ran_ms)
         VALUES (@epoch, @slot, extract(epoch FROM coalesce(@at::timestamptz, clock_timestamp())) * 1000)
         ON CONFLICT DO NOTHING`,
        values,
      );
      await sql.run('UPDATE node SET epoch = @ended, released = true WHERE slot = @slot', values);
    }
    await holder.committing(() => sql.run('COMMIT'));
    return isSame !== undefined;
  } catch (error) {
    await sql.run('ROLLBACK').catch(() => undefined);
    throw error;
  }
}
