/** Positions in the log as JSON in statements, `{"slot": id}`, and conditions on them in SQL. */
import { DENSE_SLOT, type LogPosition, MAX_DENSE_ID, SLOT_COUNT } from '../contract/log/log-position.js';
import type { Sql } from './sql.js';

/** A position as it is read from a `jsonb`; null for the position before all uplinks. */
export type PositionJson = Readonly<Record<string, number>> | null;

export function positionJson(position: LogPosition): string {
  return JSON.stringify(Object.fromEntries(position));
}

export function toPosition(json: PositionJson): LogPosition {
  return new Map(Object.entries(json ?? {}).flatMap(([slot, id]) => (id > 0 ? [[Number(slot), Number(id)]] : [])));
}

/** The id of a position in a slot. @param position a `jsonb` in SQL @param slot a number in SQL */
export function idIn(position: string, slot: string): string {
  return `coalesce((${position} ->> (${slot})::text)::bigint, 0)`;
}

/** The lowest id of a position in any slot that has a writer: no id up to it is after the position. */
export function lowestIdIn(position: string): string {
  return `coalesce((SELECT min(${idIn(position, 's.slot')}) FROM node s), 0)`;
}

/** The slot of an uplink id, in SQL: of an id that a clock made (clock-id.ts), or of one that was moved from SQLite. */
export function slotOfId(id: string): string {
  return `(CASE WHEN ${id} <= ${MAX_DENSE_ID} THEN ${DENSE_SLOT} ELSE ${id} % ${SLOT_COUNT} END)`;
}

/**
 * Returns the end of a merchant's log: of each slot, the id of the last event of that merchant. Only the index of
 * merchants' events has the order in which it is searched. With the order by ids alone PostgreSQL might walk through
 * the events of all merchants.
 */
export async function endOfLog(sql: Sql, merchantId: number): Promise<LogPosition> {
  const rows = await sql.all<{ slot: number; id: number | null }>(
    `SELECT s.slot, (SELECT CASE WHEN u.merchant_id = @merchantId AND u.slot = s.slot THEN u.id END FROM (
       SELECT merchant_id, slot, id FROM uplink
       WHERE (merchant_id, slot, id) <= (@merchantId::bigint, s.slot, ${Number.MAX_SAFE_INTEGER}) AND kind > 0
       ORDER BY merchant_id DESC, slot DESC, id DESC LIMIT 1) u) AS id
     FROM node s ORDER BY s.slot`,
    { merchantId },
  );
  return new Map(rows.flatMap(({ slot, id }) => (id === null ? [] : [[slot, id]])));
}
