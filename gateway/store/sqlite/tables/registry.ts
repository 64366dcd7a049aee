/**
 * Merchants, webhook URLs, and reading of quarantined messages and metadata, in the SQLite store, through Kysely. The
 * caller must hold the write mutex for writes. Locks and their credentials are in devices.ts.
 */

import type { Kysely, Selectable } from 'kysely';
import { LockgateError } from '../../../../proto/errors.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { merchantClosed, noSuchMerchant } from '../../contract/errors.js';
import type { QuarantinedMessage } from '../../contract/log/log-entry.js';
import { DENSE_SLOT, idInSlot, positionAfter } from '../../contract/log/log-position.js';
import type { Merchant } from '../../contract/merchants/merchant-store.js';
import { isEmptyFilter, NO_FILTER, type WebhookFilter } from '../../contract/webhooks/webhook-filter.js';
import type { NewWebhookUrl, WebhookUrl } from '../../contract/webhooks/webhook-url.js';
import type { MerchantTable } from '../schema/merchants.js';
import type { WebhookUrlTable } from '../schema/webhooks.js';
import type { Tables } from '../schema.js';

export class Registry {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** @throws LockgateError `merchant-exists` */
  async addMerchant(name: string, nowMs: number): Promise<Merchant> {
    return await this.#db.transaction().execute(async (db) => {
      await refuseTakenName(db, name);
      const row = { name, created_at_ms: nowMs, closed_at_ms: null, reopened_at_ms: null };
      return toMerchant(await db.insertInto('merchant').values(row).returningAll().executeTakeFirstOrThrow());
    });
  }

  async listMerchants(): Promise<Merchant[]> {
    return (await this.#db.selectFrom('merchant').selectAll().orderBy('id').execute()).map(toMerchant);
  }

  async readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]> {
    const rows = await this.#db
      .selectFrom('quarantine')
      .innerJoin('device', 'device.id', 'quarantine.device_id')
      .selectAll('quarantine')
      .select('device.mac')
      .where('quarantine.device_id', '=', deviceId)
      .whereRef('quarantine.merchant_id', '=', 'device.merchant_id')
      .orderBy('quarantine.id', 'desc')
      .limit(limit)
      .execute();
    return rows.map(({ id, mac, received_at_ms: receivedAtMs, code, message, bytes }) => {
      return { id, mac: mac as Mac, receivedAtMs, code, message, bytes };
    });
  }

  /** Adds a URL that gets events from now on, or after a given position. @throws LockgateError `no-such-merchant` */
  async addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl> {
    return await this.#db.transaction().execute(async (db) => {
      const merchant = await findOpenMerchant(db, url.merchant);
      const newest = await db.selectFrom('uplink').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst();
      const afterId = url.after === undefined ? Number.POSITIVE_INFINITY : idInSlot(url.after, DENSE_SLOT);
      const startAfterId = Math.min(newest?.id ?? 0, afterId);
      const row = {
        merchant_id: merchant.id,
        url: url.url,
        headers: JSON.stringify(url.headersSealed),
        headers_sealed: 1,
        secret_sealed: url.secretSealed,
        state: 'active' as const,
        disabled_why: null,
        cursor: startAfterId,
        created_at_ms: url.nowMs,
        ordered: url.ordered === true ? 1 : 0,
        started_after: startAfterId,
        attempts_per_second: url.attemptsPerSecond ?? null,
        timeout_ms: url.timeoutMs ?? null,
        ca: url.ca ?? null,
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

  async readMetadata(name: string): Promise<string | null> {
    const row = await this.#db.selectFrom('fact').select('value').where('name', '=', name).executeTakeFirst();
    return row?.value ?? null;
  }
}

/** Returns the merchant with this name. @throws LockgateError `no-such-merchant` */
export async function findMerchant(db: Kysely<Tables>, name: string): Promise<Selectable<MerchantTable>> {
  const merchant = await db.selectFrom('merchant').selectAll().where('name', '=', name).executeTakeFirst();
  if (merchant === undefined) throw noSuchMerchant(name);
  return merchant;
}

/** Returns the open merchant with this name. @throws LockgateError `no-such-merchant`, `merchant-closed` */
export async function findOpenMerchant(db: Kysely<Tables>, name: string): Promise<Selectable<MerchantTable>> {
  const merchant = await findMerchant(db, name);
  if (merchant.closed_at_ms !== null) throw merchantClosed(name);
  return merchant;
}

/** Checks that no merchant has this name, open or closed. @throws LockgateError `merchant-exists` */
export async function refuseTakenName(db: Kysely<Tables>, name: string): Promise<void> {
  const taken = await db.selectFrom('merchant').select('closed_at_ms').where('name', '=', name).executeTakeFirst();
  if (taken === undefined) return;
  const kind = taken.closed_at_ms === null ? 'a' : 'a closed';
  throw new LockgateError('merchant-exists', `there is ${kind} merchant named ${JSON.stringify(name)} already`);
}

export function toMerchant(row: Selectable<MerchantTable>): Merchant {
  const closing = { closedAtMs: row.closed_at_ms, reopenedAtMs: row.reopened_at_ms };
  return { id: row.id, name: row.name, createdAtMs: row.created_at_ms, ...closing };
}

/**
 * The columns of a URL's new filter.
 *
 * @param cursor the URL's cursor, which passes events without sending them from now on
 * @param newestId the id of the log's newest uplink; what arrives after it is not affected by the filter before
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
  return {
    id: row.id,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    url: row.url,
    headersSealed: JSON.parse(row.headers) as Record<string, string>,
    secretSealed: row.secret_sealed,
    state: row.state,
    disabledWhy: row.disabled_why,
    cursor: positionAfter(row.cursor),
    ordered: row.ordered === 1,
    startedAfter: positionAfter(row.started_after),
    filter: row.filter === null ? null : { ...NO_FILTER, ...(JSON.parse(row.filter) as Partial<WebhookFilter>) },
    wasFiltered: row.filtered_after !== null,
    attemptsPerSecond: row.attempts_per_second,
    timeoutMs: row.timeout_ms,
    ca: row.ca,
    failingSinceMs: row.failing_since_ms,
    failingForMs: row.failing_for_ms,
    hold:
      row.held_until_ms === null || row.held_for_ms === null
        ? null
        : { untilMs: row.held_until_ms, spanMs: row.held_for_ms },
    createdAtMs: row.created_at_ms,
  };
}
