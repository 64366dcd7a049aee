/**
 * The merchants' operations that the dashboard calls: the documented ones below `/v1` (docs/http.md), and below
 * `/console` those of its own login, sessions and keys.
 */
import { BEGINNING } from './beginning.js';
import { getJson, type Page, sendJson } from './http.js';
import type {
  ApiKey,
  Command,
  DashboardRole,
  Delivery,
  DeliveryHour,
  Finding,
  Invitation,
  InvitationOffer,
  LockDelivery,
  LockDetail,
  LockHistory,
  LockUsage,
  Ping,
  Session,
  StatementMonth,
  Track,
  User,
  WebhookFigures,
  WebhookUrl,
  Why,
} from './shapes.js';

/** Escapes a part of a path. */
const part = encodeURIComponent;
type Query = Readonly<Record<string, string | number | null>>;

/** The maximum number of URLs whose deliveries are loaded for one lock, and of deliveries to each. */
const MAX_URLS = 6;
const MAX_DELIVERIES = 300;
/** The number of findings that are loaded of all locks. */
const MAX_FINDINGS = 20;
/** As many webhook URLs as one answer may have. */
const MAX_LISTED_URLS = 1000;
const NO_ATTEMPTS: WebhookFigures = {
  attempts: 0,
  success_rate: null,
  p95_ms: null,
  last_success_at: null,
  last_error: null,
};

/** A webhook URL in the merchants' answers. */
interface MerchantWebhook extends WebhookFigures, Pick<WebhookUrl, 'id' | 'state' | 'disabled_why' | 'failing_since'> {
  readonly origin: string;
}

function webhookOf({ id, origin, state, disabled_why, failing_since, ...figures }: MerchantWebhook): WebhookUrl {
  return { id, name: origin, state, disabled_why, failing_since, figures };
}

export const merchantApi = Object.freeze({
  logIn: (login: { merchant: string; username: string; password: string }) =>
    sendJson<{ session: Session }>('POST', '/console/login', login),
  logOut: () => sendJson<null>('POST', '/console/logout'),
  session: () => getJson<{ session: Session; now: string }>('/console/session'),
  changePassword: (change: { present: string; password: string }) =>
    sendJson<null>('POST', '/console/password', change),
  sessions: () => getJson<{ data: readonly Session[] }>('/console/sessions'),
  endSession: (id: number) => sendJson<null>('DELETE', `/console/sessions/${id}`),
  keys: () => getJson<{ data: readonly ApiKey[] }>('/console/keys'),
  createKey: (key: { name: string; scopes?: readonly string[]; expires_at?: string }) =>
    sendJson<ApiKey & { readonly key: string }>('POST', '/console/keys', key),
  renameKey: (id: string, name: string) => sendJson<ApiKey>('PATCH', `/console/keys/${part(id)}`, { name }),
  revokeKey: (id: string) => sendJson<ApiKey>('POST', `/console/keys/${part(id)}/revoke`),

  lock: (mac: string) => getJson<LockDetail>(`/v1/locks/${part(mac)}`),
  // Null would leave the name as it is.
  rename: (mac: string, name: string | null) =>
    sendJson<LockDetail>('PATCH', `/v1/locks/${part(mac)}`, { name: name ?? '' }),
  pings: (mac: string, query: Query) => getJson<Page<Ping>>(`/v1/locks/${part(mac)}/pings`, query),
  history: (mac: string, query: Query) => getJson<LockHistory>(`/v1/locks/${part(mac)}/history`, query),
  track: (mac: string, query: Query) => getJson<Track>(`/v1/locks/${part(mac)}/track`, query),
  findings: (mac: string, query: Query) => getJson<Page<Finding>>(`/v1/locks/${part(mac)}/findings`, query),
  newestFindings: () => getJson<Page<Finding>>('/v1/findings', { limit: MAX_FINDINGS }),
  why: (id: string, query: Query = {}) => getJson<Why>(`/v1/why/${part(id)}`, query),
  commands: (query: Query) => getJson<Page<Command>>('/v1/commands', query),
  sendCommand: (mac: string, command: Readonly<Record<string, unknown>>, idempotencyKey: string) =>
    sendJson<Command>('POST', `/v1/locks/${part(mac)}/commands`, command, { 'idempotency-key': idempotencyKey }),
  cancelCommand: (id: number) => sendJson<Command>('POST', `/v1/commands/${id}/cancel`),

  webhooks: async () => {
    const { data } = await getJson<Page<MerchantWebhook>>('/v1/webhooks', { limit: MAX_LISTED_URLS });
    return { data: data.map(webhookOf) };
  },
  webhookFigures: async ({ figures }: WebhookUrl) => figures ?? NO_ATTEMPTS,
  lockDeliveries: loadLockDeliveries,
  deliveries: (id: number, query: Query) => getJson<Page<Delivery>>(`/v1/webhooks/${id}/deliveries`, query),
  deliveryHours: (id: number) => getJson<{ data: readonly DeliveryHour[] }>(`/v1/webhooks/${id}/hours`),
  resend: (id: number, event: string) =>
    sendJson<unknown>('POST', `/v1/webhooks/${id}/deliveries/${part(event)}/resend`),
  recover: (id: number) => sendJson<unknown>('POST', `/v1/webhooks/${id}/recover`, { since: BEGINNING }),

  users: (query: Query) => getJson<Page<User>>('/v1/users', query),
  changeUser: (id: string, { dashboard }: { dashboard: DashboardRole | null }) =>
    sendJson<User>('PATCH', `/v1/users/${part(id)}`, { dashboard: dashboard ?? 'none' }),
  removeUser: (id: string) => sendJson<null>('DELETE', `/v1/users/${part(id)}`),
  invitations: () => getJson<Page<Invitation>>('/v1/invitations'),
  invite: (invitation: { dashboard: DashboardRole; username?: string }) =>
    sendJson<Invitation & { readonly path: string }>('POST', '/v1/invitations', invitation),
  lookUpInvitation: (token: string) => sendJson<InvitationOffer>('POST', '/v1/invitations/look-up', { token }),
  acceptInvitation: (acceptance: { token: string; username?: string; password: string }) =>
    sendJson<InvitationOffer>('POST', '/v1/invitations/accept', acceptance),
  withdrawInvitation: (id: number) => sendJson<null>('DELETE', `/v1/invitations/${id}`),

  usage: (query: Query) => getJson<Page<LockUsage>>('/v1/usage', query),
  statements: () => getJson<Page<StatementMonth>>('/v1/statements'),
});

/** The deliveries of a lock's events to the merchant's first URLs. */
async function loadLockDeliveries(
  mac: string,
  { from, urls }: { readonly from: string; readonly urls: readonly WebhookUrl[] },
): Promise<LockDelivery[]> {
  const loaded = urls.slice(0, MAX_URLS).map(async (url) => {
    const { data } = await merchantApi.deliveries(url.id, { mac_addr: mac, from, limit: MAX_DELIVERIES });
    return data.map((delivery) => ({ target: targetOf(url, urls), delivery }));
  });
  return (await Promise.all(loaded)).flat();
}

/** The name of a URL in a timeline: its origin, and its id too if another URL has the same origin. */
function targetOf({ id, name }: WebhookUrl, urls: readonly WebhookUrl[]): string {
  return urls.some((url) => url.name === name && url.id !== id) ? `${name} (${id})` : name;
}
