/** Figures for operators, counted in the database in one transaction: as of one moment. */

import type { StoredUplink } from '../contract/log/stored-uplink.js';
import type { DiskSpace, StoreFigures, UrlBacklog } from '../contract/store-figures.js';
import type { WebhookUrl } from '../contract/webhooks/webhook-url.js';
import { IS_PING, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../log/uplink-row.js';
import { idIn, positionJson } from './position.js';
import type { Sql } from './sql.js';
import { DeliveryReads } from './tables/webhooks/delivery-reads.js';
import { listUrls } from './tables/webhooks/url-rows.js';

/** Events behind a cursor that one statement reads where a filter must be applied. */
const EVENTS_PER_PAGE = 1_000;

/** A condition: an uplink `u` has neither a row in `delivery`, as failed ones do, nor an attempt that succeeded. */
const HAS_NO_OUTCOME = `NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = @urlId AND y.uplink_id = u.id)
  AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.url_id = @urlId AND a.uplink_id = u.id AND a.error IS NULL)`;

/**
 * FROM: the merchant's uplinks `u` after the URL's cursor, up to which its worker has read the log. Each slot (a part
 * of the log that one gateway writes) is read from its own id of the cursor on. The order, and an end such as `LIMIT`
 * or `OFFSET 0`, which keeps the subquery apart, make PostgreSQL do that by the index; otherwise it would read all that
 * the merchant ever sent.
 *
 * @param condition further conditions for `u`
 */
function afterCursor(condition: string, end: string): string {
  return `FROM node s CROSS JOIN LATERAL (
    SELECT * FROM uplink u WHERE u.merchant_id = @merchantId AND u.slot = s.slot
      AND u.id > ${idIn('@cursor::jsonb', 's.slot')} AND ${condition}
    ORDER BY u.id ${end}) u`;
}

export async function readFigures(sql: Sql): Promise<StoreFigures> {
  const locks = await sql.get<{ count: number }>(
    `SELECT count(*) AS count FROM device WHERE removed_at_ms IS NULL
       AND merchant_id NOT IN (SELECT id FROM merchant WHERE closed_at_ms IS NOT NULL)`,
  );
  const backlogs: UrlBacklog[] = [];
  for (const url of await listUrls(sql)) backlogs.push(await readBacklog(sql, url));
  return { backlogs, locksInService: locks?.count ?? 0 };
}

async function readBacklog(sql: Sql, url: WebhookUrl): Promise<UrlBacklog> {
  const counts = await sql.all<{ state: string; count: number }>(
    `SELECT state, count(*) AS count FROM delivery
     WHERE url_id = @urlId AND state IN ('pending', 'dead', 'damaged') GROUP BY state`,
    { urlId: url.id },
  );
  const oldestPending = await sql.get<{ at: number | null }>(
    `SELECT received_at_ms AS at FROM uplink WHERE id = (
       SELECT min(uplink_id) FROM delivery WHERE url_id = @urlId AND state = 'pending')`,
    { urlId: url.id },
  );
  const behind = url.filter === null ? await countBehind(sql, url) : await countPassing(sql, url);
  const times = [behind.oldestMs, oldestPending?.at ?? null].filter((at) => at !== null);
  const of = (state: string): number => counts.find((row) => row.state === state)?.count ?? 0;
  return {
    urlId: url.id,
    isDisabled: url.state === 'disabled',
    behind: behind.count,
    pending: of('pending'),
    dead: of('dead'),
    damaged: of('damaged'),
    oldestReceivedAtMs: times.length === 0 ? null : Math.min(...times),
  };
}

interface Behind {
  readonly count: number;
  readonly oldestMs: number | null;
}

async function countBehind(sql: Sql, url: WebhookUrl): Promise<Behind> {
  const row = await sql.get<Behind>(
    `SELECT count(*) AS count, min(u.received_at_ms) AS "oldestMs" ${afterCursor(IS_PING, 'OFFSET 0')}
     WHERE ${HAS_NO_OUTCOME}`,
    { urlId: url.id, merchantId: url.merchantId, cursor: positionJson(url.cursor) },
  );
  return row ?? { count: 0, oldestMs: null };
}

/**
 * Counts the events without an outcome that pass the URL's filter, page by page. A filter may also let events pass that
 * are not pings.
 */
async function countPassing(sql: Sql, url: WebhookUrl): Promise<Behind> {
  const reads = new DeliveryReads(sql);
  const page = `u.kind > 0 AND u.id > @afterId AND ${HAS_NO_OUTCOME}`;
  let [count, oldestMs, afterId]: [number, number | null, number] = [0, null, 0];
  for (;;) {
    const rows = await sql.all<UplinkRow>(
      `SELECT ${UPLINK_COLUMNS} ${afterCursor(page, `LIMIT ${EVENTS_PER_PAGE}`)}
       JOIN device d ON d.id = u.device_id ORDER BY u.id LIMIT ${EVENTS_PER_PAGE}`,
      { urlId: url.id, merchantId: url.merchantId, cursor: positionJson(url.cursor), afterId },
    );
    const events: StoredUplink[] = rows.map(toUplink);
    const passing = url.filter === null ? events : await reads.selectPassing(url.filter, events);
    count += passing.length;
    // Ids of several gateways are not quite in the order of receipt.
    for (const { receivedAtMs } of passing) oldestMs = Math.min(oldestMs ?? receivedAtMs, receivedAtMs);
    const last = events.at(-1);
    if (last === undefined || events.length < EVENTS_PER_PAGE) return { count, oldestMs };
    afterId = last.id;
  }
}

/** The size of the database. How much room its disk has, only its own machine knows. */
export async function readDiskSpace(sql: Sql): Promise<DiskSpace> {
  const row = await sql.get<{ bytes: number }>('SELECT pg_database_size(current_database()) AS bytes');
  return { storeBytes: row?.bytes ?? 0, freeBytes: null };
}
