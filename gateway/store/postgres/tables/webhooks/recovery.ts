/**
 * Makes events due at a URL again: undelivered ones, also those of gaps (uplinks that the URL's cursor skipped when the
 * URL was enabled again), and those whose stored pings match their checksums again.
 */
import { LOG_START, type LogPosition, movedAfter } from '../../../contract/log/log-position.js';
import type { RecoveryStep } from '../../../contract/webhook-store.js';
import { IS_PING, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../../log/uplink-row.js';
import { idIn, positionJson, slotOfId } from '../../position.js';
import type { Sql } from '../../sql.js';
import type { Writes } from '../../writes.js';
import { type DeliveryReads, HAS_SUCCEEDED } from './delivery-reads.js';
import { findUrl } from './url-rows.js';

/** Maximum number of damaged events that are read together and released in one transaction. */
const MAX_REPAIRED_AT_ONCE = 200;

/** Makes the events @ids due at a URL now. The retry schedule starts again: it leaves out `attempts_before`. */
export const PUT_DUE = `INSERT INTO delivery AS y
    (url_id, uplink_id, device_id, state, attempts, attempts_before, next_attempt_at_ms)
  SELECT @urlId, u.id, u.device_id, 'pending', n.made, n.made, @nowMs FROM uplink u CROSS JOIN LATERAL (
    SELECT coalesce(max(number), 0) AS made FROM attempt WHERE url_id = @urlId AND uplink_id = u.id) n
  WHERE u.id = ANY(@ids::bigint[]) AND u.kind > 0 ORDER BY u.id
  ON CONFLICT (url_id, uplink_id) DO UPDATE SET
    state = 'pending', device_id = excluded.device_id, attempts_before = y.attempts,
    next_attempt_at_ms = excluded.next_attempt_at_ms`;

export class Recovery {
  readonly #read: Sql;
  readonly #writes: Writes;
  readonly #deliveries: DeliveryReads;

  constructor(read: Sql, writes: Writes, deliveries: DeliveryReads) {
    this.#read = read;
    this.#writes = writes;
    this.#deliveries = deliveries;
  }

  async recover(
    urlId: number,
    { after, before, limit, nowMs }: RecoveryStep,
  ): Promise<{ count: number; next: LogPosition | null }> {
    const filter = (await findUrl(this.#read, urlId))?.filter ?? null;
    const range = (id: string): string => isBetween(id, before);
    const undelivered = await this.#read.all<UplinkRow>(
      `SELECT ${UPLINK_COLUMNS} FROM (
         SELECT uplink_id AS id FROM delivery WHERE url_id = @urlId AND state IN ('dead', 'pending')
           AND ${range('uplink_id')}
         UNION
         SELECT u.id FROM webhook_gap g JOIN webhook_url w ON w.id = g.url_id
         JOIN uplink u ON u.merchant_id = w.merchant_id AND u.slot = g.slot AND u.id > g.after_id AND u.id <= g.until_id
         WHERE g.url_id = @urlId AND u.kind > 0 AND (@isFiltered OR ${IS_PING}) AND ${range('u.id')}
           AND NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = u.id)
           AND NOT ${HAS_SUCCEEDED}
         ORDER BY id LIMIT @limit) o
       JOIN uplink u ON u.id = o.id JOIN device d ON d.id = u.device_id ORDER BY u.id`,
      {
        ...{ urlId, limit, isFiltered: filter !== null },
        ...{ after: positionJson(after), before: positionJson(before ?? LOG_START) },
      },
    );
    const events = undelivered.map(toUplink);
    const passing = filter === null ? events : await this.#deliveries.selectPassing(filter, events);
    await this.#writes.run('recover events', async (sql) => {
      // With another version, what the URL's worker has on its way is refused, and it starts again from these rows.
      await sql.run('UPDATE webhook_url SET version = version + 1 WHERE id = @urlId', { urlId });
      await sql.run(PUT_DUE, { urlId, ids: passing.map(({ id }) => id), nowMs });
    });
    const next = events.reduce((position, { id }) => movedAfter(position, id), after);
    return { count: passing.length, next: events.length === 0 ? null : next };
  }

  async releaseRepaired(urlId: number, { after, before, nowMs }: Omit<RecoveryStep, 'limit'>): Promise<number> {
    let released = 0;
    for (let lastId: number | undefined = 0; lastId !== undefined; ) {
      const rows: UplinkRow[] = await this.#read.all<UplinkRow>(
        `SELECT ${UPLINK_COLUMNS} FROM delivery y
           JOIN uplink u ON u.id = y.uplink_id JOIN device d ON d.id = u.device_id
         WHERE y.url_id = @urlId AND y.state = 'damaged' AND y.uplink_id > @lastId
           AND ${isBetween('y.uplink_id', before)}
         ORDER BY y.uplink_id LIMIT ${MAX_REPAIRED_AT_ONCE}`,
        { urlId, lastId, after: positionJson(after), before: positionJson(before ?? LOG_START) },
      );
      const uplinks = rows.map(toUplink);
      const ids = uplinks.filter(({ isDamaged }) => !isDamaged).map(({ id }) => id);
      if (ids.length > 0)
        await this.#writes.run('send repaired events', (sql) => sql.run(PUT_DUE, { urlId, ids, nowMs }));
      released += ids.length;
      lastId = uplinks.at(-1)?.id;
    }
    return released;
  }
}

/** A condition that an id is after the position @after, and not after @before if there is one. */
function isBetween(id: string, before: LogPosition | undefined): string {
  const isAfter = `${id} > ${idIn('@after::jsonb', slotOfId(id))}`;
  return before === undefined ? isAfter : `${isAfter} AND ${id} <= ${idIn('@before::jsonb', slotOfId(id))}`;
}
