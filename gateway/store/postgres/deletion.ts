/** Deletes data: all data of one lock, or old rows chunk by chunk. Each call is one transaction of the caller's. */
import type { AgingChunk, AgingResult, Erased } from '../contract/deletion.js';
import { uplinkSum } from '../log/uplink-sum.js';
import { CURSOR, dropOldPartition } from './old-partitions.js';
import { idIn } from './position.js';
import type { Sql } from './sql.js';

/** A row that may be deleted. */
interface OldRow {
  readonly id: number;
  readonly is_old: boolean;
  /** An undelivered event, which must stay. */
  readonly is_held: boolean;
}

/**
 * An active URL still needs the uplink, since it is after the URL's cursor, or waits for a retry or for an earlier
 * event of its lock. Events that a URL did not get while it was disabled may be deleted.
 */
const IS_HELD = `(t.kind > 0 AND EXISTS (
  SELECT 1 FROM webhook_url w WHERE w.merchant_id = t.merchant_id AND w.state = 'active'
    AND (t.id > ${idIn(CURSOR, 't.slot')} OR EXISTS (
      SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = t.id AND y.state = 'pending'))))`;

const TIME_COLUMN: Readonly<Record<AgingChunk['table'], string>> = {
  uplink: 'received_at_ms',
  lock_event: 'at_ms',
  finding: 'at_ms',
  quarantine: 'received_at_ms',
};

/** All URLs, so that the index over (url_id, uplink_id) is used. */
const ANY_URL = 'url_id IN (SELECT id FROM webhook_url)';

/**
 * Deletes a chunk's old rows. Ids grow with the time of arrival, so it stops at the first row that is not too old. A
 * sweep of the log begins with whole days, one at a time (old-partitions.ts).
 */
export async function deleteOld(sql: Sql, { table, beforeMs, afterId, limit }: AgingChunk): Promise<AgingResult> {
  const dropped = table === 'uplink' && afterId === 0 ? await dropOldPartition(sql, beforeMs) : null;
  if (dropped !== null) return { deleted: dropped, held: 0, nextId: 0 };
  const rows = await sql.all<OldRow>(
    `SELECT t.id, t.${TIME_COLUMN[table]} < @beforeMs AS is_old, ${table === 'uplink' ? IS_HELD : 'false'} AS is_held
     FROM ${table} t WHERE t.id > @afterId ORDER BY t.id LIMIT @limit`,
    { beforeMs, afterId, limit },
  );
  const firstNew = rows.findIndex(({ is_old: isOld }) => !isOld);
  const old = firstNew === -1 ? rows : rows.slice(0, firstNew);
  const ids = old.filter(({ is_held: isHeld }) => !isHeld).map(({ id }) => id);
  if (table === 'uplink' && ids.length > 0) {
    await sql.run(`DELETE FROM attempt WHERE ${ANY_URL} AND uplink_id = ANY(@ids::bigint[])`, { ids });
    await sql.run(`DELETE FROM delivery WHERE ${ANY_URL} AND uplink_id = ANY(@ids::bigint[])`, { ids });
  }
  if (ids.length > 0) await sql.run(`DELETE FROM ${table} WHERE id = ANY(@ids::bigint[])`, { ids });
  // A gap records which events a URL did not get; it is useless once all its events are deleted.
  if (table === 'uplink' && ids.length > 0)
    await sql.run('DELETE FROM webhook_gap WHERE until_id < (SELECT min(id) FROM uplink)');
  const isFinished = firstNew !== -1 || rows.length < limit;
  return { deleted: ids.length, held: old.length - ids.length, nextId: isFinished ? null : (old.at(-1)?.id ?? null) };
}

interface KeyRow {
  readonly id: number;
  readonly merchant_id: number;
  readonly credential_id: number;
  readonly boot: number;
  readonly sequence: number;
  readonly received_at_ms: number;
  readonly buffered: number;
}

/** The kind of erased uplinks; that of others is 0 or more. */
const ERASED_KIND = -1;
const NOTHING = Buffer.alloc(0);

/** Erases a lock's data; of its uplinks only the keys stay. @param state the lock's new state, as JSON */
export async function eraseDevice(sql: Sql, deviceId: number, state: string | null): Promise<Erased> {
  const ids = 'SELECT id FROM uplink WHERE device_id = @deviceId';
  const values = { deviceId };
  const pending = await sql.get<{ count: number }>(
    `SELECT count(*) AS count FROM delivery WHERE ${ANY_URL} AND uplink_id IN (${ids}) AND state = 'pending'`,
    values,
  );
  await sql.run(`DELETE FROM attempt WHERE ${ANY_URL} AND uplink_id IN (${ids})`, values);
  await sql.run(`DELETE FROM delivery WHERE ${ANY_URL} AND uplink_id IN (${ids})`, values);
  const uplinks = await eraseUplinks(sql, deviceId);
  const remove = (table: string): Promise<number> =>
    sql.run(`DELETE FROM ${table} WHERE device_id = @deviceId`, values);
  const findings = await remove('finding');
  const quarantined = await remove('quarantine');
  const lockEvents = await remove('lock_event');
  const refusals = await remove('refusal');
  // Events about ended commands that are not in the log yet.
  await remove('staged_event');
  await remove('device_state');
  if (state !== null)
    await sql.run(
      `INSERT INTO device_state (device_id, state, through_uplink_id)
       VALUES (@deviceId, @state, (SELECT coalesce(max(id), 0) FROM uplink WHERE device_id = @deviceId))`,
      { deviceId, state },
    );
  return { uplinks, findings, quarantined, lockEvents, refusals, pendingDeliveries: pending?.count ?? 0 };
}

/** Erased rows remain, and get a new checksum. Returns how many. */
async function eraseUplinks(sql: Sql, deviceId: number): Promise<number> {
  const rows = await sql.all<KeyRow>(
    `SELECT id, merchant_id, credential_id, boot, sequence, received_at_ms, buffered FROM uplink
     WHERE device_id = @deviceId AND kind >= 0`,
    { deviceId },
  );
  const sums = rows.map((row) =>
    uplinkSum({ ...row, device_id: deviceId, digest: NOTHING, bytes: NOTHING, kind: ERASED_KIND }),
  );
  return await sql.run(
    `UPDATE uplink u SET bytes = '', digest = '', kind = ${ERASED_KIND}, sum = t.sum
     FROM unnest(@ids::bigint[], @sums::bigint[]) AS t (id, sum) WHERE u.id = t.id AND u.device_id = @deviceId`,
    { ids: rows.map(({ id }) => id), sums, deviceId },
  );
}
