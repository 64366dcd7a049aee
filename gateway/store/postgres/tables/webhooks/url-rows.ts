/**
 * Webhook URLs in PostgreSQL, with their cursors, which have an id for each slot of the log. Writes are made inside the
 * caller's exclusive transaction.
 */
import { merchantClosed, noSuchMerchant, noSuchWebhook, unstorableText } from '../../../contract/errors.js';
import { idInSlot, type LogPosition } from '../../../contract/log/log-position.js';
import type { WebhookChange } from '../../../contract/webhook-store.js';
import { isEmptyFilter, type WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import type { NewWebhookUrl, WebhookUrl } from '../../../contract/webhooks/webhook-url.js';
import { changedUrlColumns, newUrlColumns, toUrl, type WebhookUrlRow } from '../../../tables/webhook-urls.js';
import { endOfLog, type PositionJson, positionJson, toPosition } from '../../position.js';
import { plannedOnce, type Sql, type Values } from '../../sql.js';

type UrlRow = WebhookUrlRow & {
  readonly cursor: PositionJson;
  readonly started_after: PositionJson;
  readonly filtered_after: PositionJson;
  /** Grows when an operator changes the URL; a worker's progress from before is refused then. */
  readonly version: number;
};

const URLS = `SELECT w.*, m.name AS merchant_name,
  (SELECT jsonb_object_agg(c.slot, c.id) FROM url_cursor c WHERE c.url_id = w.id) AS cursor
  FROM webhook_url w JOIN merchant m ON m.id = w.merchant_id`;

export async function listUrls(sql: Sql): Promise<WebhookUrl[]> {
  return (await sql.all<UrlRow>(`${URLS} ORDER BY w.id`)).map(toWebhookUrl);
}

/** Is told the version of a URL's row that was read, which grows when an operator changes the URL. */
export type OnVersion = (urlId: number, version: number) => void;

export async function findUrl(sql: Sql, urlId: number, onVersion?: OnVersion): Promise<WebhookUrl | null> {
  const row = await sql.get<UrlRow>(`${URLS} WHERE w.id = @urlId`, { urlId });
  if (row !== undefined) onVersion?.(urlId, row.version);
  return row === undefined ? null : toWebhookUrl(row);
}

/** @throws LockgateError `no-such-webhook` */
export async function requireUrl(sql: Sql, urlId: number): Promise<WebhookUrl> {
  const url = await findUrl(sql, urlId);
  if (url === null) throw noSuchWebhook(urlId);
  return url;
}

function toWebhookUrl(row: UrlRow): WebhookUrl {
  return toUrl(row, {
    cursor: toPosition(row.cursor),
    startedAfter: toPosition(row.started_after),
    wasFiltered: row.filtered_after !== null,
  });
}

/** Adds a URL that gets events from now on, or after a given position. @throws LockgateError `no-such-merchant` */
export async function addUrl(sql: Sql, url: NewWebhookUrl): Promise<WebhookUrl> {
  const merchant = await sql.get<{ id: number; closed_at_ms: number | null }>(
    'SELECT id, closed_at_ms FROM merchant WHERE name = @name',
    { name: url.merchant },
  );
  if (merchant === undefined) throw noSuchMerchant(url.merchant);
  if (merchant.closed_at_ms !== null) throw merchantClosed(url.merchant);
  const end = await endOfLog(sql, merchant.id);
  const start = url.after === undefined ? end : lowerOf(url.after, end);
  const row = {
    ...newUrlColumns(url, merchant.id),
    started_after: positionJson(start),
    ...(url.filter === undefined ? {} : filterColumns(url.filter, null, start, start)),
  };
  const names = Object.keys(row);
  const added = await sql.get<{ id: number }>(
    `INSERT INTO webhook_url (${names.join(', ')}) VALUES (${names.map((name) => `@${name}`).join(', ')}) RETURNING id`,
    row as Values,
  );
  const urlId = (added as { id: number }).id;
  await moveCursor(sql, urlId, start);
  return await requireUrl(sql, urlId);
}

/** A position that is after neither. */
function lowerOf(one: LogPosition, other: LogPosition): LogPosition {
  return new Map([...other].map(([slot, id]) => [slot, Math.min(id, idInSlot(one, slot))]));
}

const MOVE_CURSOR = plannedOnce(
  `INSERT INTO url_cursor (url_id, slot, id)
   SELECT w.id, t.slot, t.id FROM unnest(@slots::bigint[], @ids::bigint[]) AS t (slot, id)
   JOIN webhook_url w ON w.id = @urlId
   ON CONFLICT (url_id, slot) DO UPDATE SET id = greatest(url_cursor.id, excluded.id)`,
);

/** Moves a URL's cursor on, in each slot; never back. */
export async function moveCursor(sql: Sql, urlId: number, position: LogPosition): Promise<void> {
  await sql.run(MOVE_CURSOR, { urlId, slots: [...position.keys()], ids: [...position.values()] });
}

/** The filter as JSON, which statements read as `jsonb`: that can't hold U+0000, not even escaped. */
function filterText(filter: WebhookFilter): string {
  return JSON.stringify(filter, (_name, member: unknown) => {
    if (typeof member === 'string' && member.includes('\0')) throw unstorableText();
    return member;
  });
}

/** The columns of a URL's new filter. @param end of the merchant's log, up to which an earlier filter may have acted */
function filterColumns(filter: WebhookFilter, before: LogPosition | null, cursor: LogPosition, end: LogPosition) {
  if (!isEmptyFilter(filter))
    return {
      filter: filterText(filter),
      filtered_after: positionJson(before ?? cursor),
      filtered_until: null,
    };
  return {
    filter: null,
    filtered_after: before && positionJson(before),
    filtered_until: before && positionJson(end),
  };
}

/** Changes a URL. @throws LockgateError `no-such-webhook` */
export async function changeUrl(sql: Sql, urlId: number, change: WebhookChange): Promise<WebhookUrl> {
  await sql.get('SELECT 1 AS one FROM webhook_url WHERE id = @urlId FOR UPDATE', { urlId });
  const before = await requireUrl(sql, urlId);
  const { filter } = change;
  const isBeingEnabled = change.disabledWhy === null && before.state === 'disabled';
  // An enabled URL gets events from now on; those that arrived while it was disabled become a gap.
  if (isBeingEnabled) await passGap(sql, before);
  const cursor = isBeingEnabled ? (await requireUrl(sql, urlId)).cursor : before.cursor;
  const changed = {
    ...changedUrlColumns(change, isBeingEnabled),
    ...(filter !== undefined &&
      filterColumns(filter, await readFilteredAfter(sql, urlId), cursor, await endOfLog(sql, before.merchantId))),
  };
  const changes = ['version = version + 1', ...Object.keys(changed).map((name) => `${name} = @${name}`)];
  await sql.run(`UPDATE webhook_url SET ${changes.join(', ')} WHERE id = @urlId`, { ...changed, urlId });
  return await requireUrl(sql, urlId);
}

/** Moves a URL's cursor to the end of its merchant's log, and records which uplinks it passed. */
async function passGap(sql: Sql, { id: urlId, merchantId, cursor }: WebhookUrl): Promise<void> {
  const end = await endOfLog(sql, merchantId);
  for (const [slot, untilId] of end) {
    const afterId = idInSlot(cursor, slot);
    if (untilId > afterId)
      await sql.run(
        'INSERT INTO webhook_gap (url_id, slot, after_id, until_id) VALUES (@urlId, @slot, @afterId, @untilId)',
        { urlId, slot, afterId, untilId },
      );
  }
  await moveCursor(sql, urlId, end);
}

async function readFilteredAfter(sql: Sql, urlId: number): Promise<LogPosition | null> {
  const row = await sql.get<{ after: PositionJson }>(
    'SELECT filtered_after AS after FROM webhook_url WHERE id = @urlId',
    { urlId },
  );
  return row === undefined || row.after === null ? null : toPosition(row.after);
}
