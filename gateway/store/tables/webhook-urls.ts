/**
 * Rows of webhook URLs. Engines store the positions in the log of a URL's cursor and of its start in their own ways.
 */
import type { Insertable, Selectable } from 'kysely';
import type { WebhookChange } from '../contract/webhook-store.js';
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

/** The columns of a URL without failures and pauses. */
const NO_FAILURES = { failing_since_ms: null, failing_for_ms: 0, held_until_ms: null, held_for_ms: null };

/**
 * The columns that a change of a URL writes, without the filter and the positions.
 *
 * @param isBeingEnabled whether the URL was disabled until now and the change enables it
 */
export function changedUrlColumns(change: WebhookChange, isBeingEnabled: boolean) {
  const { url, headersSealed, ordered, disabledWhy, attemptsPerSecond, timeoutMs, ca } = change;
  return {
    ...(url !== undefined && { url }),
    ...(headersSealed !== undefined && { headers: JSON.stringify(headersSealed), headers_sealed: 1 }),
    ...(ordered !== undefined && { ordered: ordered ? 1 : 0 }),
    ...(attemptsPerSecond !== undefined && { attempts_per_second: attemptsPerSecond }),
    ...(timeoutMs !== undefined && { timeout_ms: timeoutMs }),
    ...(ca !== undefined && { ca }),
    ...(typeof disabledWhy === 'string' && { state: 'disabled' as const, disabled_why: disabledWhy }),
    ...(isBeingEnabled && { state: 'active' as const, disabled_why: null }),
    // Earlier failures and pauses do not apply to a new or newly enabled receiver.
    ...((isBeingEnabled || url !== undefined) && NO_FAILURES),
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
