/**
 * Which events for merchants a commit stores, besides pings: those that a webhook URL of the lock's merchant gets. An
 * event about the end of a command is *staged* first: a trigger puts it into `staged_event` when the command ends, and
 * the next commit moves it into the log.
 */
import { MERCHANT_EVENT_KINDS, type NewMerchantEvent } from '../../contract/webhooks/merchant-event.js';
import type { Sql } from '../sql.js';
import type { MerchantEventRow } from './commit-batch.js';

/** Maximum number of staged events that one commit moves into the log; the next commits move the others. */
export const MAX_MOVED_PER_COMMIT = 500;

/** Returns those of the events that a URL of their lock's merchant gets, in their order. */
export async function selectWanted(sql: Sql, events: readonly NewMerchantEvent[]): Promise<MerchantEventRow[]> {
  if (events.length === 0) return [];
  const rows = await sql.all<{ n: number; merchant_id: number }>(
    `SELECT t.n, d.merchant_id FROM unnest(@devices::bigint[], @types::text[]) WITH ORDINALITY AS t (device_id, type, n)
     JOIN device d ON d.id = t.device_id AND d.removed_at_ms IS NULL
     WHERE EXISTS (SELECT 1 FROM webhook_url w
       WHERE w.merchant_id = d.merchant_id AND w.filter::jsonb -> 'events' ? t.type)
     ORDER BY t.n`,
    { devices: events.map(({ deviceId }) => deviceId), types: events.map(({ type }) => type) },
  );
  return rows.flatMap(({ n, merchant_id: merchantId }) => {
    const event = events[n - 1];
    if (event === undefined) return [];
    const { deviceId, type, atMs, content } = event;
    const kind = MERCHANT_EVENT_KINDS[type];
    return [{ deviceId, merchantId, kind, atMs, content: JSON.stringify(content), stagedId: 0 }];
  });
}

/** Returns the oldest staged events. */
export async function readStaged(sql: Sql): Promise<MerchantEventRow[]> {
  return await sql.all<MerchantEventRow>(
    `SELECT id AS "stagedId", device_id AS "deviceId", merchant_id AS "merchantId", kind, at_ms AS "atMs", content
     FROM staged_event ORDER BY id LIMIT ${MAX_MOVED_PER_COMMIT}`,
  );
}
