/**
 * The claim of a slot: the number in which this process writes its part of the log. The claim's epoch and session are
 * random numbers that never return, and every write joins a row with both (fence.ts). Whoever claims a slot ends the
 * epoch before it, and starts above all ids that were given in the slot.
 */
import { randomBytes } from 'node:crypto';
import { LockgateError } from '../../../proto/errors.js';
import { ClockIds } from '../contract/slots/clock-id.js';
import type { Connections, WatchedClient } from './connections.js';
import { ADVISORY_LOCKS } from './migrate.js';

/** How many gateways may use a database at once, from slot 1 on; 0 is the slot of dense ids. */
const LAST_SLOT = 1;
/** Advisory locks of slots: the slot plus this. A process holds its own while it is connected. */
const SLOT_LOCKS = 1_000;
const RANDOM_BYTES = 7;
/** Numbers below this are exact in JavaScript. */
const RANDOM_BITS = 53n;

/** A number that no claim had or will have: 53 random bits. */
export function randomNumber(): number {
  const bits = BigInt(`0x${randomBytes(RANDOM_BYTES).toString('hex')}`);
  return Number(bits & ((1n << RANDOM_BITS) - 1n));
}

/** A claimed slot. */
export interface Claim {
  readonly slot: number;
  readonly epoch: number;
  /** Replaced after each commit in doubt; each number is in doubt until a later one is stored. */
  session: number;
  readonly ids: ClockIds;
  /** Holds the advisory lock of the slot until it is closed. */
  readonly holder: WatchedClient;
  /** The database's time at the claim, ms since the epoch. */
  readonly nowMs: number;
}

/**
 * Claims the first slot, which must be free: released, or its process is not connected any more. Several gateways on
 * one database need claims of locks, which this engine does not have yet, so a second gateway is refused.
 *
 * @throws LockgateError `data-in-use`
 */
export async function claimSlot(connections: Connections, version: string): Promise<Claim> {
  const holder = await connections.open();
  try {
    const { sql } = holder;
    const slot = await lockFreeSlot(holder);
    const [epoch, session] = [randomNumber(), randomNumber()];
    await holder.committing(() =>
      sql.run(
        `INSERT INTO node (slot, epoch, session, version, released) VALUES (@slot, @epoch, @session, @version, false)
         ON CONFLICT (slot) DO UPDATE SET
           epoch = excluded.epoch, session = excluded.session, version = excluded.version, released = false`,
        { slot, epoch, session, version },
      ),
    );
    const start = await sql.get<{ id: number; now_ms: number }>(
      `SELECT greatest(
           (SELECT max(id) FROM uplink WHERE slot = @slot), (SELECT max(id) FROM url_cursor WHERE slot = @slot),
           (SELECT max(until_id) FROM webhook_gap WHERE slot = @slot),
           (SELECT closed_id FROM node_beat WHERE slot = @slot), 0) AS id,
         extract(epoch FROM clock_timestamp()) * 1000 AS now_ms`,
      { slot },
    );
    await sql.run(
      `INSERT INTO node_beat (slot, epoch, at) VALUES (@slot, @epoch, clock_timestamp())
       ON CONFLICT (slot) DO UPDATE SET epoch = excluded.epoch, at = excluded.at`,
      { slot, epoch },
    );
    const ids = new ClockIds(slot, start?.id ?? 0);
    return { slot, epoch, session, ids, holder, nowMs: start?.now_ms ?? 0 };
  } catch (error) {
    await holder.client.end().catch(() => undefined);
    throw error;
  }
}

/** Takes the advisory lock of the first slot that nobody holds. */
async function lockFreeSlot({ sql }: WatchedClient): Promise<number> {
  for (let slot = 1; slot <= LAST_SLOT; slot += 1) {
    const row = await sql.get<{ locked: boolean }>('SELECT pg_try_advisory_lock(@locks, @lock) AS locked', {
      locks: ADVISORY_LOCKS,
      lock: SLOT_LOCKS + slot,
    });
    if (row?.locked === true) return slot;
  }
  throw new LockgateError('data-in-use', 'another gateway uses the database: stop it first');
}

/** Gives the slot back: nothing more is written under the claim. */
export async function releaseSlot({ slot, epoch, ids, holder }: Claim): Promise<void> {
  try {
    await holder.sql.run(
      `WITH f AS (UPDATE node SET released = true, epoch = @ended WHERE slot = @slot AND epoch = @epoch RETURNING 1)
       UPDATE node_beat SET closed_id = greatest(closed_id, @lastId) FROM f WHERE node_beat.slot = @slot`,
      { slot, epoch, ended: randomNumber(), lastId: ids.lastId },
    );
  } finally {
    await holder.client.end();
  }
}
