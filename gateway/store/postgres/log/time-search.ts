/**
 * Finds the place of a time in the log. Uplinks have ids by the database's clock, and times of receipt by their
 * gateway's clock: so times grow with ids, but for the difference between the gateways' clocks.
 */
import { Seconds } from '../../../../proto/clock.js';
import { DENSE_SLOT, type LogPosition, MAX_DENSE_ID } from '../../contract/log/log-position.js';
import { lowestIdAt, timeOfIdMs } from '../../contract/slots/clock-id.js';
import { endOfLog } from '../position.js';
import type { Sql } from '../sql.js';

/** By how much gateways' clocks may differ for the place of a time to be exact in each slot. */
const MAX_CLOCK_DIFFERENCE = Seconds(10);

/**
 * Returns the first uplink that was received at that time or later, by a binary search; a higher id than all if there
 * is none.
 */
export async function findFirstUplinkFrom(sql: Sql, receivedAtMs: number): Promise<number> {
  const statement = 'SELECT id, received_at_ms FROM uplink WHERE id >= @id ORDER BY id LIMIT 1';
  let [low, high, lastId] = [0, Number.MAX_SAFE_INTEGER, 0];
  while (low < high) {
    const middle = Math.floor(low + (high - low) / 2);
    const row = await sql.get<{ id: number; received_at_ms: number }>(statement, { id: middle });
    if (row === undefined || row.received_at_ms >= receivedAtMs) high = middle;
    else [low, lastId] = [row.id + 1, row.id];
  }
  const first = await sql.get<{ id: number }>(statement, { id: low });
  return first?.id ?? lastId + 1;
}

/** The uplinks of a slot around a time: the first one from it on, and the last one before it. */
interface Around {
  readonly slot: number;
  readonly first: number | null;
  readonly last: number | null;
}

/**
 * Returns the position after the uplinks that were received before that time. In each slot it is the place of the whole
 * log's first uplink from that time on, corrected by the slot's own uplinks around it, whose gateway's clock may be
 * different.
 */
export async function findPositionAt(sql: Sql, receivedAtMs: number): Promise<LogPosition> {
  const firstId = await findFirstUplinkFrom(sql, receivedAtMs);
  // All of the slot 0 are of one gateway, and before those of all others.
  if (firstId <= MAX_DENSE_ID) return new Map(firstId > 1 ? [[DENSE_SLOT, firstId - 1]] : []);
  // The end is read before the uplinks, so that these include all that is before it. Beyond it the position must not
  // be: a slot may still store ids below those of another.
  const end = await endOfLog(sql);
  const atMs = timeOfIdMs(firstId);
  const rows = await sql.all<Around>(
    `SELECT slot, min(id) FILTER (WHERE received_at_ms >= @receivedAtMs) AS first,
       max(id) FILTER (WHERE received_at_ms < @receivedAtMs) AS last
     FROM uplink WHERE id > greatest(@from, ${MAX_DENSE_ID}) AND id < @to GROUP BY slot`,
    {
      receivedAtMs,
      from: lowestIdAt(atMs - MAX_CLOCK_DIFFERENCE, 0),
      to: lowestIdAt(atMs + MAX_CLOCK_DIFFERENCE, 0),
    },
  );
  const around = new Map(rows.map((row) => [row.slot, row]));
  return new Map(
    [...end].map(([slot, lastId]) => {
      const { first = null, last = null } = around.get(slot) ?? {};
      return [slot, first === null ? Math.max(last ?? 0, Math.min(lastId, firstId - 1)) : first - 1];
    }),
  );
}
