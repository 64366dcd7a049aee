/**
 * Rows of webhook URLs. Engines store the positions in the log of a URL's cursor and of its start in their own ways.
 */
import type { Insertable, Selectable } from 'kysely';
import { NO_FILTER, type WebhookFilter } from '../contract/webhooks/webhook-filter.js';
import type { NewWebhookUrl, WebhookUrl } from '../contract/webhooks/webhook-url.js';
import type { WebhookUrlTable } from './schema/webhooks.js';

/** The columns with positions. */
type PositionColumn = 'cursor' | 'started_after' | 'filtered_after' | 'filtered_until';

/** A row without the positions, with its merchant's name. */
export type WebhookUrlRow = Omit<Selectable<WebhookUrlTable>, PositionColumn> & { readonly merchant_name: string };

/** The columns of a new URL, without the filter and the positions. */
export function newUrlColumns(
  url: NewWebhookUrl,
  merchantId: number,
): Omit<Insertable<WebhookUrlTable>, PositionColumn | 'filter'> {
  return {
    merchant_id: merchantId,
    url: url.url,
    headers: JSON.stringify(url.headersSealed),
    headers_sealed: 1,
    secret_sealed: url.secretSealed,
    state: 'active',
    disabled_why: null,
    created_at_ms: url.nowMs,
    ordered: url.ordered === true ? 1 : 0,
    attempts_per_second: url.attemptsPerSecond ?? null,
    timeout_ms: url.timeoutMs ?? null,
    ca: url.ca ?? null,
  };
}

/** Converts a row; the engine gives the positions. */
export function toUrl(
  row: WebhookUrlRow,
  positions: Pick<WebhookUrl, 'cursor' | 'startedAfter' | 'wasFiltered'>,
): WebhookUrl {
  return {
    id: row.id,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    url: row.url,
    headersSealed: JSON.parse(row.headers) as Record<string, string>,
    secretSealed: row.secret_sealed,
    state: row.state,
    disabledWhy: row.disabled_why,
    ordered: row.ordered === 1,
    filter: row.filter === null ? null : { ...NO_FILTER, ...(JSON.parse(row.filter) as Partial<WebhookFilter>) },
    ...positions,
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
