/**
 * The operators' operations that their page calls (docs/operator.md), in the shapes that the screens show, and the
 * page's own login and session.
 */
import { BEGINNING } from './beginning.js';
import type { ConsoleApi } from './console-calls.js';
import { ApiFailure, getJson, sendJson } from './http.js';
import {
  type CommandOutcome,
  commandOf,
  type DeliveryAnswer,
  deliveryOf,
  findingOf,
  type GatewayStatus,
  lockDetailOf,
  type OperatorCommand,
  type OperatorFinding,
  type OperatorLockDetail,
  type OperatorSession,
  type OperatorWebhook,
  statusTroubles,
  webhookOf,
} from './operator-shapes.js';
import type { DeliveryHour, LockHistory, Ping, Track, WebhookFigures, Why } from './shapes.js';

/** Escapes a part of a path. */
const part = encodeURIComponent;
/** Who asked for a command, as lists of commands show it. The audit log names the token. */
const ASKED_BY = 'console';

/** The number of findings that are loaded of all locks. */
const MAX_FINDINGS = 20;
/** The maximum number of deliveries in one answer. */
const MAX_LOCK_DELIVERIES = 500;

/** The member of an answer that has only one page of a list. */
interface Paged {
  readonly next_cursor: string | null;
}

const calls: ConsoleApi = {
  // Null would leave the name as it is.
  rename: (mac, name) => sendJson<unknown>('PATCH', `/devices/${part(mac)}`, { name: name ?? '' }),
  lock: async (mac) => lockDetailOf(await getJson<OperatorLockDetail>(`/devices/${part(mac)}`)),
  history: (mac, { from }) => getJson<LockHistory>(`/devices/${part(mac)}/history`, { since: from }),
  pings: async (mac, { from, limit }) => {
    const path = `/devices/${part(mac)}/pings`;
    const { pings, next_cursor } = await getJson<Paged & { pings: readonly Ping[] }>(path, { since: from, limit });
    return { data: pings, next_cursor };
  },
  track: (mac, { from }) => getJson<Track>(`/devices/${part(mac)}/track`, { since: from }),
  findings: async (mac, query) => {
    const path = `/devices/${part(mac)}/findings`;
    const { findings, next_cursor } = await getJson<Paged & { findings: readonly OperatorFinding[] }>(path, query);
    return { data: findings.map(findingOf), next_cursor };
  },
  why: (id) => getJson<Why>('/why', { id }),
  commands: async ({ mac_addr: mac, limit }) => {
    const answer = await getJson<Paged & { commands: readonly OperatorCommand[] }>('/commands', { mac, limit });
    return { data: answer.commands.map(commandOf), next_cursor: answer.next_cursor };
  },
  // Without the key: the operators' interface has no idempotency keys.
  sendCommand: async (mac, command) => {
    const body = { macs: [mac], asked_by: ASKED_BY, ...command };
    const { commands } = await sendJson<{ commands: readonly CommandOutcome[] }>('POST', '/commands', body);
    const [outcome] = commands;
    if (outcome === undefined) throw new ApiFailure(0, '', 'The gateway did not say what became of the command.');
    if ('error' in outcome) throw new ApiFailure(409, outcome.error.code, outcome.error.detail);
    return commandOf(outcome);
  },
  cancelCommand: async (id) => commandOf(await sendJson<OperatorCommand>('POST', `/commands/${id}/cancel`)),
  webhooks: async () => {
    const { webhooks } = await getJson<{ webhooks: readonly OperatorWebhook[] }>('/webhooks');
    return { data: webhooks.map(webhookOf) };
  },
  webhookFigures: async ({ id }) => (await getJson<{ last_day: WebhookFigures }>(`/webhooks/${id}`)).last_day,
  lockDeliveries: async (mac, { from, urls }) => {
    const query = { mac, since: from, limit: MAX_LOCK_DELIVERIES };
    const { deliveries } = await getJson<{ deliveries: readonly DeliveryAnswer[] }>('/deliveries', query);
    // The name of a URL is the URL.
    const names = new Map(urls.map(({ id, name }) => [id, `${new URL(name).origin} (${id})`]));
    return deliveries.map((each) => ({
      target: names.get(each.url_id) ?? String(each.url_id),
      delivery: deliveryOf(each),
    }));
  },
  deliveries: async (url, query) => {
    const answer = await getJson<Paged & { deliveries: readonly DeliveryAnswer[] }>('/deliveries', { url, ...query });
    return { data: answer.deliveries.map(deliveryOf), next_cursor: answer.next_cursor };
  },
  deliveryHours: async (id) => {
    return { data: (await getJson<{ hours: readonly DeliveryHour[] }>(`/webhooks/${id}/hours`)).hours };
  },
  resend: (url_id, event) => sendJson<unknown>('POST', `/events/${part(event)}/resend`, { url_id }),
  recover: (url_id) => sendJson<unknown>('POST', '/deliveries/recover', { url_id, since: BEGINNING }),
  newestFindings: async () => {
    const query = { limit: MAX_FINDINGS };
    const { findings, next_cursor } = await getJson<Paged & { findings: readonly OperatorFinding[] }>(
      '/findings',
      query,
    );
    return { data: findings.map(findingOf), next_cursor };
  },
  gatewayTroubles: async () => statusTroubles(await getJson<GatewayStatus>('/status')),
};

export const operatorApi = Object.freeze({
  ...calls,
  /** Opens a session with the token of a one-time link. */
  logIn: (token: string) => sendJson<{ session: OperatorSession }>('POST', '/console/login', { token }),
  logOut: () => sendJson<null>('POST', '/console/logout'),
  session: () => getJson<{ session: OperatorSession; now: string }>('/console/session'),
});
