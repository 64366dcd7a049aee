/**
 * Finds and changes webhook URLs in the SQLite store, through Kysely. The caller must hold the write mutex for writes.
 * All ids of this engine are in one slot of the log, so that a position in the log is an id.
 *
 * A URL's *cursor* is the uplink up to which every event has an outcome: it was delivered, or has a row in `delivery`.
 * A *gap* is a range of uplinks that the cursor skipped when a disabled URL was enabled; their events were not sent.
 */
import type { Kysely } from 'kysely';
import { noSuchWebhook } from '../../../contract/errors.js';
import { DENSE_SLOT, idInSlot } from '../../../contract/log/log-position.js';
import type { SecretRotation, WebhookChange } from '../../../contract/webhook-store.js';
import type { WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import type { WebhookUrl } from '../../../contract/webhooks/webhook-url.js';
import type { Tables } from '../../../tables/schema.js';
import { changedUrlColumns } from '../../../tables/webhook-urls.js';
import { filterColumns, toWebhookUrl } from './url-rows.js';
import type { Gap } from './webhook-rows.js';

/** The URL with this id; null if there is none. */
export async function findUrl(db: Kysely<Tables>, urlId: number): Promise<WebhookUrl | null> {
  const row = await db
    .selectFrom('webhook_url')
    .innerJoin('merchant', 'merchant.id', 'webhook_url.merchant_id')
    .selectAll('webhook_url')
    .select('merchant.name as merchant_name')
    .where('webhook_url.id', '=', urlId)
    .executeTakeFirst();
  return row === undefined ? null : toWebhookUrl(row);
}

/** @throws LockgateError `no-such-webhook` */
async function requireUrl(db: Kysely<Tables>, urlId: number): Promise<WebhookUrl> {
  const url = await findUrl(db, urlId);
  if (url === null) throw noSuchWebhook(urlId);
  return url;
}

/** The URL's gaps, oldest first. */
export async function readGaps(db: Kysely<Tables>, urlId: number): Promise<Gap[]> {
  const rows = await db.selectFrom('webhook_gap').selectAll().where('url_id', '=', urlId).orderBy('after_id').execute();
  return rows.map((row) => ({ afterId: row.after_id, untilId: row.until_id }));
}

/** Returns the id of the log's last uplink, but at least `minId`. */
export async function endOfLog(db: Kysely<Tables>, minId: number): Promise<number> {
  const last = await db.selectFrom('uplink').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst();
  return Math.max(last?.id ?? 0, minId);
}

/** Changes a URL in a transaction. @throws LockgateError `no-such-webhook` */
export async function changeUrl(db: Kysely<Tables>, urlId: number, change: WebhookChange): Promise<WebhookUrl> {
  const before = await requireUrl(db, urlId);
  const { filter } = change;
  const isBeingEnabled = change.disabledWhy === null && before.state === 'disabled';
  // An enabled URL gets events from now on; those that arrived while it was disabled become a gap.
  const cursorBefore = idInSlot(before.cursor, DENSE_SLOT);
  const cursor = isBeingEnabled ? await endOfLog(db, cursorBefore) : cursorBefore;
  if (cursor > cursorBefore) {
    const gap = { url_id: urlId, after_id: cursorBefore, until_id: cursor };
    await db.insertInto('webhook_gap').values(gap).execute();
  }
  const changed = {
    ...changedUrlColumns(change, isBeingEnabled),
    ...(filter !== undefined && (await changedFilterColumns(db, before, filter))),
    ...(isBeingEnabled && { cursor }),
  };
  // Enabling an active URL changes no column, and an UPDATE without columns is not valid SQL.
  if (Object.keys(changed).length > 0)
    await db.updateTable('webhook_url').set(changed).where('id', '=', urlId).execute();
  return await requireUrl(db, urlId);
}

async function changedFilterColumns(db: Kysely<Tables>, { id, ...url }: WebhookUrl, filter: WebhookFilter) {
  const cursor = idInSlot(url.cursor, DENSE_SLOT);
  const { filtered_after } = await db
    .selectFrom('webhook_url')
    .select('filtered_after')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return filterColumns(filter, { filtered_after }, cursor, await endOfLog(db, cursor));
}

/**
 * Gives a URL a new secret, in a transaction. The old one stays valid until `oldValidUntilMs`.
 *
 * @throws LockgateError `no-such-webhook`
 */
export async function rotateUrlSecret(
  db: Kysely<Tables>,
  urlId: number,
  { secretSealed, nowMs, oldValidUntilMs }: SecretRotation,
): Promise<WebhookUrl> {
  const before = await requireUrl(db, urlId);
  const old = { url_id: urlId, secret_sealed: before.secretSealed, valid_until_ms: oldValidUntilMs };
  await db.insertInto('webhook_old_secret').values(old).execute();
  // A rotation may shorten the validity of older secrets, but never extends it.
  await db
    .updateTable('webhook_old_secret')
    .set({ valid_until_ms: oldValidUntilMs })
    .where('url_id', '=', urlId)
    .where('valid_until_ms', '>', oldValidUntilMs)
    .execute();
  await db.deleteFrom('webhook_old_secret').where('url_id', '=', urlId).where('valid_until_ms', '<=', nowMs).execute();
  await db.updateTable('webhook_url').set({ secret_sealed: secretSealed }).where('id', '=', urlId).execute();
  return await requireUrl(db, urlId);
}

/** Deletes a URL and all rows that belong to it, in a transaction. @throws LockgateError `no-such-webhook` */
export async function removeUrl(db: Kysely<Tables>, urlId: number): Promise<void> {
  await requireUrl(db, urlId);
  await db.deleteFrom('delivery').where('url_id', '=', urlId).execute();
  await db.deleteFrom('attempt').where('url_id', '=', urlId).execute();
  await db.deleteFrom('webhook_old_secret').where('url_id', '=', urlId).execute();
  await db.deleteFrom('webhook_gap').where('url_id', '=', urlId).execute();
  await db.deleteFrom('webhook_url').where('id', '=', urlId).execute();
}
