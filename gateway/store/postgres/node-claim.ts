/**
 * The claim of a slot: the number in which this process writes its part of the log. The claim's epoch and session are
 * random numbers that never return, and every write joins a row with both (fence.ts). Whoever claims a slot has ended
 * the epoch before it, and starts above all ids in the log. A gateway's beat is a time in its row that it renews each
 * second.
 */
import { monotonicMs, Seconds, systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { SLOT_COUNT } from '../contract/log/log-position.js';
import { ClockIds } from '../contract/slots/clock-id.js';
import type { Connections, WatchedClient } from './connections/connections.js';
import { type EpochToEnd, endEpoch, randomNumber } from './epoch-end.js';
import { ADVISORY_LOCKS } from './migrate.js';

/** Several gateways use the slots from 1 on, a gateway alone only 1; 0 is for engines that number uplinks 1, 2, 3 … */
const LAST_SLOT = SLOT_COUNT - 1;
/** A gateway that is not connected any more has stopped, if its beat stays the same for this long. */
export const CRASHED_AFTER = Seconds(3);
const LOOK_INTERVAL = Seconds(0.25);
/** Advisory locks of slots: the slot plus this. A process holds its own while it is connected. */
const SLOT_LOCKS = 1_000;
/** Advisory locks of slots that a process which starts examines: the slot plus this. */
const STARTER_LOCKS = 2_000;
/** The advisory lock that each gateway of a shared database holds as a shared lock, and a gateway alone as its own. */
const SHARING_LOCK = 999;

/** A claimed slot. */
export interface Claim {
  readonly slot: number;
  readonly epoch: number;
  /** Replaced after each commit whose answer was lost, so that the lost statement can store nothing any more. */
  session: number;
  readonly ids: ClockIds;
  /** Holds the advisory lock of the slot until it is closed. */
  holder: WatchedClient;
  /** The database's time at the claim, ms since the epoch. */
  readonly nowMs: number;
}

/**
 * Claims a free slot: one that was released, or whose process is not connected any more.
 *
 * @param isShared whether other gateways may use the database too; otherwise the slot is the first one, and any other
 *   gateway on the database refuses this one, or is refused
 * @throws LockgateError `data-in-use`
 */
export async function claimSlot(
  connections: Pick<Connections, 'open' | 'read'>,
  version: string,
  isShared: boolean,
): Promise<Claim> {
  const holder = await connections.open();
  try {
    const { sql } = holder;
    const [epoch, session] = [randomNumber(), randomNumber()];
    await lockSharing(holder, isShared);
    const slot = isShared ? await freeSlot(connections, holder) : await firstSlot(connections, holder);
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
           (SELECT max(id) FROM uplink), (SELECT max(id) FROM url_cursor WHERE slot = @slot),
           (SELECT max(until_id) FROM webhook_gap WHERE slot = @slot),
           (SELECT closed_id FROM node_beat WHERE slot = @slot), 0) AS id,
         extract(epoch FROM clock_timestamp()) * 1000 AS now_ms`,
      { slot },
    );
    await sql.run(
      `INSERT INTO node_beat (slot, epoch, at) VALUES (@slot, @epoch, clock_timestamp())
       ON CONFLICT (slot) DO UPDATE SET epoch = excluded.epoch, at = excluded.at, counted_to_ms = 0`,
      { slot, epoch },
    );
    const ids = new ClockIds(slot, start?.id ?? 0);
    return { slot, epoch, session, ids, holder, nowMs: start?.now_ms ?? 0 };
  } catch (error) {
    await holder.client.end().catch(() => undefined);
    throw error;
  }
}

/** The slots that were not released. */
const READ_NODES = `SELECT n.slot, n.epoch, b.at::text AS at FROM node n LEFT JOIN node_beat b ON b.slot = n.slot
  WHERE NOT n.released`;

/**
 * Takes the lock that a gateway holds while it uses the database: a shared one if other gateways may use it too, else
 * an exclusive one.
 *
 * @throws LockgateError `data-in-use` if another holds a lock that excludes this one
 */
export async function lockSharing({ sql }: WatchedClient, isShared: boolean): Promise<void> {
  const tryLock = isShared ? 'pg_try_advisory_lock_shared' : 'pg_try_advisory_lock';
  const values = { locks: ADVISORY_LOCKS, lock: SHARING_LOCK };
  const row = await sql.get<{ locked: boolean }>(`SELECT ${tryLock}(@locks::int, @lock::int) AS locked`, values);
  if (row?.locked !== true) throw inUse();
}

function inUse(): LockgateError {
  return new LockgateError('data-in-use', 'another gateway uses the database: stop it first');
}

/** Takes the advisory lock of a slot, which shows that its process is connected. Returns false if another has it. */
export async function lockSlot(holder: WatchedClient, slot: number): Promise<boolean> {
  return await tryLock(holder, SLOT_LOCKS + slot);
}

async function tryLock({ sql }: WatchedClient, lock: number): Promise<boolean> {
  const values = { locks: ADVISORY_LOCKS, lock };
  const row = await sql.get<{ locked: boolean }>(
    'SELECT pg_try_advisory_lock(@locks::int, @lock::int) AS locked',
    values,
  );
  return row?.locked === true;
}

async function unlock({ sql }: WatchedClient, lock: number): Promise<void> {
  await sql.get('SELECT pg_advisory_unlock(@locks::int, @lock::int)', { locks: ADVISORY_LOCKS, lock });
}

/** The slots whose processes are connected, by their advisory locks. */
export async function connectedSlots({ sql }: WatchedClient): Promise<ReadonlySet<number>> {
  const rows = await sql.all<{ slot: number }>(
    `SELECT (objid::bigint - @first) AS slot FROM pg_locks
     WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = @locks AND granted
       AND objid::bigint BETWEEN @first + 1 AND @first + @last
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    { first: SLOT_LOCKS, last: LAST_SLOT, locks: ADVISORY_LOCKS },
  );
  return new Set(rows.map(({ slot }) => slot));
}

/**
 * Locks the first slot, and ends the epochs that other gateways left.
 *
 * @throws LockgateError `data-in-use` if one still beats
 */
async function firstSlot(connections: Pick<Connections, 'read'>, holder: WatchedClient): Promise<number> {
  if (!(await lockSlot(holder, 1))) throw inUse();
  // The first slot last: if another gateway beats, nothing has been ended.
  for (const other of await holder.sql.all<EpochToEnd>(`${READ_NODES} ORDER BY n.slot DESC`)) {
    // The one in the first slot is not connected, as the lock shows. It was usually alone, and then never beat.
    if (other.slot > 1 && !(await isSilent(holder, other))) throw inUse();
    if (!(await end(connections, holder, other))) throw inUse();
  }
  return 1;
}

/**
 * Locks the first slot that nobody has, and ends the epoch that was left in it.
 *
 * @throws LockgateError `data-in-use` if all slots are taken
 */
async function freeSlot(connections: Pick<Connections, 'read'>, holder: WatchedClient): Promise<number> {
  for (let slot = 1; slot <= LAST_SLOT; slot += 1) {
    // Processes that start together examine different slots.
    if (!(await tryLock(holder, STARTER_LOCKS + slot))) continue;
    const isFree = await lockIfFree(connections, holder, slot);
    await unlock(holder, STARTER_LOCKS + slot);
    if (isFree) return slot;
  }
  throw new LockgateError('data-in-use', `${LAST_SLOT} gateways use the database already: no more can`);
}

/** Locks a slot and ends its epoch, unless its gateway is connected or beats: it may only have lost its connection. */
async function lockIfFree(
  connections: Pick<Connections, 'read'>,
  holder: WatchedClient,
  slot: number,
): Promise<boolean> {
  if (!(await lockSlot(holder, slot))) return false;
  const former = await readNode(holder, slot);
  if (former === undefined) return true;
  // By the lock other gateways see whether the former one is connected (stopped-gateways.ts): so it is not held.
  await unlock(holder, SLOT_LOCKS + slot);
  if (!(await isSilent(holder, former)) || !(await lockSlot(holder, slot))) return false;
  if (await end(connections, holder, former)) return true;
  await unlock(holder, SLOT_LOCKS + slot);
  return false;
}

/** Ends an epoch, unless its gateway has beaten again since it was examined. Returns whether its slot is released. */
async function end(
  connections: Pick<Connections, 'read'>,
  holder: WatchedClient,
  former: EpochToEnd,
): Promise<boolean> {
  // It may have been released, or ended by another gateway.
  return (await endEpoch(connections, holder, former)) || (await readNode(holder, former.slot)) === undefined;
}

/** Whether a gateway's beat stays the same for a while, or its slot is released meanwhile. */
async function isSilent(holder: WatchedClient, former: EpochToEnd): Promise<boolean> {
  for (const startMs = monotonicMs(); monotonicMs() - startMs < CRASHED_AFTER; ) {
    await new Promise<void>((resolve) => systemClock.after(LOOK_INTERVAL, resolve));
    const now = await readNode(holder, former.slot);
    if (now === undefined) return true;
    if (!isSameBeat(now, former)) return false;
  }
  return true;
}

/** The gateway that has the slot; undefined if it was released. */
async function readNode({ sql }: WatchedClient, slot: number): Promise<EpochToEnd | undefined> {
  return await sql.get<EpochToEnd>(`${READ_NODES} AND n.slot = @slot`, { slot });
}

function isSameBeat(one: EpochToEnd, other: EpochToEnd): boolean {
  return one.epoch === other.epoch && one.at === other.at;
}

/**
 * Gives the slot back: nothing more is written under the claim. If the connection broke, on a new one; if the database
 * is away, the slot is free all the same, since its process is not connected any more.
 */
export async function releaseSlot(claim: Claim, connections: Pick<Connections, 'open'>): Promise<void> {
  try {
    await release(claim, claim.holder);
  } catch {
    const again = await connections.open().catch(() => undefined);
    if (again === undefined) return;
    await release(claim, again)
      .catch(() => undefined)
      .finally(() => again.client.end().catch(() => undefined));
  } finally {
    await claim.holder.client.end().catch(() => undefined);
  }
}

async function release({ slot, epoch, ids }: Claim, { sql }: WatchedClient): Promise<void> {
  await sql.run(
    `WITH f AS (UPDATE node SET released = true, epoch = @ended WHERE slot = @slot AND epoch = @epoch RETURNING 1),
       e AS (INSERT INTO ended_epoch (epoch, slot, last_ran_ms)
         SELECT @epoch, @slot, extract(epoch FROM clock_timestamp()) * 1000 FROM f)
     UPDATE node_beat SET closed_id = greatest(closed_id, @lastId) FROM f WHERE node_beat.slot = @slot`,
    { slot, epoch, ended: randomNumber(), lastId: ids.lastId },
  );
}
