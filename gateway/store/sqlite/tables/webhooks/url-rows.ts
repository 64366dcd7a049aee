/**
 * Webhook URLs in the SQLite store, through Kysely. The caller must hold the write mutex for writes. On SQLite the ids
 * of uplinks are 1, 2, 3 … (*dense*), so that a single id says how far a URL has got in the log.
 */
import type { Kysely, Selectable } from 'kysely';
import { DENSE_SLOT, idInSlot, positionAfter } from '../../../contract/log/log-position.js';
import { isEmptyFilter, NO_FILTER, type WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import type { NewWebhookUrl, WebhookUrl } from '../../../contract/webhooks/webhook-url.js';
import { findOpenMerchant } from '../../../tables/registry.js';
import type { WebhookUrlTable } from '../../../tables/schema/webhooks.js';
import type { Tables } from '../../../tables/schema.js';
import { newUrlColumns, toUrl } from '../../../tables/webhook-urls.js';

export class UrlRows {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** Adds a URL that gets events from now on, or after a given position. @throws LockgateError `no-such-merchant` */
  async addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl> {
    return await this.#db.transaction().execute(async (db) => {
      const merchant = await findOpenMerchant(db, url.merchant);
      const newest = await db.selectFrom('uplink').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst();
      const afterId = url.after === undefined ? Number.POSITIVE_INFINITY : idInSlot(url.after, DENSE_SLOT);
      const startAfterId = Math.min(newest?.id ?? 0, afterId);
      const row = {
        ...newUrlColumns(url, merchant.id),
        cursor: startAfterId,
        started_after: startAfterId,
        ...filterColumns(url.filter ?? NO_FILTER, { filtered_after: null }, startAfterId, startAfterId),
      };
      const added = await db.insertInto('webhook_url').values(row).returningAll().executeTakeFirstOrThrow();
      return toWebhookUrl({ ...added, merchant_name: merchant.name });
    });
  }

  async listWebhookUrls(): Promise<WebhookUrl[]> {
    const rows = await this.#db
      .selectFrom('webhook_url')
      .innerJoin('merchant', 'merchant.id', 'webhook_url.merchant_id')
      .selectAll('webhook_url')
      .select('merchant.name as merchant_name')
      .orderBy('webhook_url.id')
      .execute();
    return rows.map(toWebhookUrl);
  }
}

/**
 * The columns of a URL's new filter.
 *
 * @param cursor the URL's cursor (the uplink up to which every event has an outcome); from here on it may pass events
 *   that the filter leaves out
 * @param newestId the id of the log's newest uplink; what arrives after it is not affected by the former filter
 */
export function filterColumns(
  filter: WebhookFilter,
  { filtered_after: before }: Pick<Selectable<WebhookUrlTable>, 'filtered_after'>,
  cursor: number,
  newestId: number,
): Pick<Selectable<WebhookUrlTable>, 'filter' | 'filtered_after' | 'filtered_until'> {
  if (!isEmptyFilter(filter))
    return { filter: JSON.stringify(filter), filtered_after: before ?? cursor, filtered_until: null };
  return { filter: null, filtered_after: before, filtered_until: before === null ? null : newestId };
}

/** Converts a row of `webhook_url` with its merchant's name. */
export function toWebhookUrl(row: Selectable<WebhookUrlTable> & { merchant_name: string }): WebhookUrl {
  return toUrl(row, {
    cursor: positionAfter(row.cursor),
    startedAfter: positionAfter(row.started_after),
    wasFiltered: row.filtered_after !== null,
  });
}
