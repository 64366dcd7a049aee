/**
 * Drops days of the log that are too old and that no webhook URL needs any more: that takes a moment, where deleting
 * row by row takes minutes and leaves space to be vacuumed.
 */
import { Days } from '../../../proto/clock.js';
import { MAX_DENSE_ID } from '../contract/log/log-position.js';
import { CLOCK_ID_EPOCH_MS } from '../contract/slots/clock-id.js';
import { isLockTimeout, LIMIT_LOCK_WAIT } from './lock-wait.js';
import { idsOfDay } from './partitions.js';
import { idIn } from './position.js';
import type { Sql } from './sql.js';

/** Attempts and deliveries that are deleted at once, before their day is dropped. */
const ROWS_PER_STEP = 10_000;
/** The partition of the ids that a store had in SQLite (move/). */
const MOVED_PARTITION = 'uplink_moved';

/** The cursor of a URL `w`, as JSON. */
export const CURSOR = '(SELECT jsonb_object_agg(c.slot, c.id) FROM url_cursor c WHERE c.url_id = w.id)';

interface Partition {
  readonly name: string;
  /** The ids from the first to below the second. */
  readonly ids: readonly [from: number, to: number];
}

/**
 * Drops the oldest partition, if each of its uplinks was received before `beforeMs` and no active URL needs one; or
 * makes a step towards that. Must run in a transaction.
 *
 * @returns how many uplinks were dropped; null if there is no such partition
 */
export async function dropOldPartition(sql: Sql, beforeMs: number): Promise<number | null> {
  for (const partition of await listEnded(sql, beforeMs)) {
    const isHeld = await isNeeded(sql, partition);
    if (isHeld || !(await isOld(sql, partition, beforeMs))) continue;
    const { name } = partition;
    for (const table of ['attempt', 'delivery']) if ((await deleteOf(sql, table, partition)) > 0) return 0;
    const rows = await sql.get<{ count: number }>(`SELECT count(*) AS count FROM ${name}`);
    if (!(await drop(sql, name))) return null;
    await sql.run('DELETE FROM webhook_gap WHERE until_id < (SELECT min(id) FROM uplink)');
    return rows?.count ?? 0;
  }
  return null;
}

/** The partitions of days that ended before a time, and before now, oldest first; and those of moved uplinks. */
async function listEnded(sql: Sql, beforeMs: number): Promise<Partition[]> {
  const rows = await sql.all<{ name: string; now_ms: number }>(
    `SELECT c.relname AS name, extract(epoch FROM clock_timestamp()) * 1000 AS now_ms
     FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'uplink'::regclass`,
  );
  const found = rows.flatMap(({ name, now_ms: nowMs }): (Partition & { readonly endMs: number })[] => {
    if (name === MOVED_PARTITION) return [{ name, ids: [0, MAX_DENSE_ID + 1], endMs: 0 }];
    const day = Number(/^uplink_day_(\d+)$/.exec(name)?.[1]);
    const endMs = CLOCK_ID_EPOCH_MS + (day + 1) * Days(1);
    // Not true for a name without a day.
    return endMs <= Math.min(beforeMs, nowMs) ? [{ name, ids: idsOfDay(day), endMs }] : [];
  });
  return found.sort((one, other) => one.endMs - other.endMs);
}

/** Whether an active URL has not read all of the partition, or is to try one of its events again. */
async function isNeeded(sql: Sql, { name, ids: [from, to] }: Partition): Promise<boolean> {
  const needed = await sql.get(
    `SELECT 1 AS one FROM webhook_url w WHERE w.state = 'active' AND (
       EXISTS (SELECT 1 FROM node s CROSS JOIN LATERAL (
         SELECT 1 FROM ${name} u WHERE u.merchant_id = w.merchant_id AND u.slot = s.slot AND u.kind > 0
           AND u.id > ${idIn(CURSOR, 's.slot')} LIMIT 1) u)
       OR EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.state = 'pending'
         AND y.uplink_id >= @from AND y.uplink_id < @to)) LIMIT 1`,
    { from, to },
  );
  return needed !== undefined;
}

/** Whether all rows are old by the gateways' clock, too. The newest row is looked at first: that is quick. */
async function isOld(sql: Sql, { name }: Partition, beforeMs: number): Promise<boolean> {
  const newest = `SELECT 1 AS one FROM (SELECT received_at_ms FROM ${name} ORDER BY id DESC LIMIT 1) u
    WHERE received_at_ms >= @beforeMs`;
  if ((await sql.get(newest, { beforeMs })) !== undefined) return false;
  const any = await sql.get(`SELECT 1 AS one FROM ${name} WHERE received_at_ms >= @beforeMs LIMIT 1`, { beforeMs });
  return any === undefined;
}

/** Deletes a step of the attempts or deliveries of a partition's events. */
async function deleteOf(sql: Sql, table: string, { ids: [from, to] }: Partition): Promise<number> {
  return await sql.run(
    `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
       SELECT t.ctid FROM ${table} t WHERE t.url_id IN (SELECT id FROM webhook_url)
         AND t.uplink_id >= @from AND t.uplink_id < @to LIMIT ${ROWS_PER_STEP}))`,
    { from, to },
  );
}

/** Drops a partition. Returns false if reads of the log hold it for too long: its rows are deleted one by one then. */
async function drop(sql: Sql, name: string): Promise<boolean> {
  await sql.run('SAVEPOINT before_drop');
  try {
    await sql.get(LIMIT_LOCK_WAIT);
    await sql.run(`DROP TABLE ${name}`);
    return true;
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    await sql.run('ROLLBACK TO before_drop');
    return false;
  }
}
