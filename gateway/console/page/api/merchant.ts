/** The merchant's documented operations that the dashboard calls, and its own login, sessions and keys. */
import { getJson, type Page, sendJson } from './http.js';
import type {
  ApiKey,
  Command,
  DashboardRole,
  Delivery,
  Finding,
  Invitation,
  InvitationOffer,
  LockDetail,
  LockHistory,
  LockUsage,
  Ping,
  Session,
  StatementMonth,
  Track,
  User,
  WebhookUrl,
  Why,
} from './shapes.js';

/** A part of a path. */
const part = encodeURIComponent;
type Query = Readonly<Record<string, string | number | null>>;

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
  revokeKey: (id: string) => sendJson<ApiKey>('POST', `/console/keys/${part(id)}/revoke`),

  lock: (mac: string) => getJson<LockDetail>(`/v1/locks/${part(mac)}`),
  changeLock: (mac: string, change: { name?: string | null; labels?: Readonly<Record<string, string>> }) =>
    sendJson<LockDetail>('PATCH', `/v1/locks/${part(mac)}`, change),
  pings: (mac: string, query: Query) => getJson<Page<Ping>>(`/v1/locks/${part(mac)}/pings`, query),
  history: (mac: string, query: Query) => getJson<LockHistory>(`/v1/locks/${part(mac)}/history`, query),
  track: (mac: string, query: Query) => getJson<Track>(`/v1/locks/${part(mac)}/track`, query),
  findings: (mac: string, query: Query) => getJson<Page<Finding>>(`/v1/locks/${part(mac)}/findings`, query),
  why: (id: string, query: Query = {}) => getJson<Why>(`/v1/why/${part(id)}`, query),
  commands: (query: Query) => getJson<Page<Command>>('/v1/commands', query),
  sendCommand: (mac: string, command: Readonly<Record<string, unknown>>, idempotencyKey: string) =>
    sendJson<Command>('POST', `/v1/locks/${part(mac)}/commands`, command, { 'idempotency-key': idempotencyKey }),
  cancelCommand: (id: number) => sendJson<Command>('POST', `/v1/commands/${id}/cancel`),

  webhooks: () => getJson<Page<WebhookUrl>>('/v1/webhooks', { limit: 1000 }),
  deliveries: (id: number, query: Query) => getJson<Page<Delivery>>(`/v1/webhooks/${id}/deliveries`, query),
  resend: (id: number, event: string) =>
    sendJson<unknown>('POST', `/v1/webhooks/${id}/deliveries/${part(event)}/resend`),
  recover: (id: number) => sendJson<unknown>('POST', `/v1/webhooks/${id}/recover`),

  users: (query: Query) => getJson<Page<User>>('/v1/users', query),
  changeUser: (id: string, change: { dashboard: DashboardRole | null }) =>
    sendJson<User>('PATCH', `/v1/users/${part(id)}`, change),
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
