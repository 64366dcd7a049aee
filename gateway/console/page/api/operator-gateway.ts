/** The operators' operations about the gateway itself: its status, settings and audit log (docs/operator.md). */
import type { AuditEntryJson } from '../../wording/audit-text.js';
import { getJson } from './http.js';
import type { UrlStatus } from './url-status.js';

/** The gateway's status, as far as the page shows it. Dates are RFC 3339. Null: not known, or there is none. */
export interface GatewayStatus {
  readonly version: string;
  readonly started_at: string;
  readonly status: 'ready' | 'starting' | 'stopping' | 'degraded';
  readonly reasons: readonly { readonly code: string; readonly since: string; readonly why: string }[];
  readonly pings_per_second: number;
  readonly notices_unread: number;
  readonly notices_sending: NoticeSending | null;
  readonly store: string;
  readonly mqtt: {
    readonly host: string;
    readonly port: number;
    readonly connected: number;
    /** How many CONNECTs, publishes and so on were refused since the start, by kind. */
    readonly refused: Readonly<Record<string, number>>;
    readonly certificate_end: string | null;
  };
  readonly http: { readonly host: string; readonly port: number };
  /** The open file descriptors of the gateway's process. */
  readonly descriptors: { readonly open: number | null; readonly limit: number | null };
  readonly locks: { readonly in_service: number | null; readonly presence: Readonly<Record<string, number>> };
  readonly urls: readonly UrlStatus[] | null;
  readonly disk: { readonly store_bytes: number; readonly free_bytes: number | null } | null;
  readonly event_loop: { readonly worst_delay_ms: number };
  readonly run_clock: string;
  readonly clock: { readonly state: string; readonly machine: string | null; readonly confirmed: string | null };
}

/** How sending notices goes. */
interface NoticeSending {
  readonly origin: string;
  /** `new`: nothing was sent yet. */
  readonly state: 'new' | 'working' | 'failing';
  /** How many messages wait, and how many were given up. */
  readonly pending: number;
  readonly dead: number;
  readonly last_error: { readonly at: string; readonly error: string } | null;
}

/** A setting and where it comes from. */
export interface SettingJson {
  readonly key: string;
  readonly flag: string;
  readonly environment: string;
  /** The effective value. */
  readonly value: string;
  readonly source: 'default' | 'file' | 'environment' | 'flag';
  readonly default: string;
  readonly unit: string;
  readonly meaning: string;
}

/** An entry of the audit log. */
export interface AuditEntry extends AuditEntryJson {
  readonly ended_at: string | null;
}

type Query = Readonly<Record<string, string | number | null>>;

export const gatewayApi = Object.freeze({
  status: () => getJson<GatewayStatus>('/status'),
  /** Only admins may read them. */
  settings: () => getJson<{ readonly settings: readonly SettingJson[] }>('/config'),
  audit: (query: Query) =>
    getJson<{ readonly entries: readonly AuditEntry[]; readonly next_cursor: string | null }>('/audit', query),
  /** The names of the open merchants. */
  merchants: () => getJson<{ readonly merchants: readonly { readonly name: string }[] }>('/merchants'),
  /** The merchant of each webhook URL. */
  urls: () =>
    getJson<{
      readonly webhooks: readonly { readonly id: number; readonly merchant: string; readonly url: string }[];
    }>('/webhooks'),
});
