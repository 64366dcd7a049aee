/**
 * The gateway's events as JSON, one object each: what `tail` streams. The names are those of traces (protocol.md §4)
 * where a trace has them.
 */
import { formatMac } from '../../proto/mac.js';
import { isPingUplink } from '../../proto/ping.js';
import { isDatable, pingToJson, powerToJson, toDate } from '../../proto/ping-json.js';
import type { Finding } from '../../proto/power-judge-event.js';
import type { Presence } from '../../proto/power-judge-presence.js';
import type { GatewayEventMap, GatewayEvents, UplinkTaken } from '../events.js';

export type EventJson = Readonly<Record<string, unknown>> & { readonly at: string; readonly event: string };

type Writer<Name extends keyof GatewayEventMap> = (event: GatewayEventMap[Name][0]) => EventJson;

const WRITERS: { readonly [Name in keyof GatewayEventMap]: Writer<Name> } = {
  connected: ({ atMs, mac, simulated }) => {
    return { at: toDate(atMs), mac: formatMac(mac), event: 'connect', source: 'lock', simulated };
  },
  disconnected: ({ atMs, mac, cause }) => ({ at: toDate(atMs), mac: formatMac(mac), event: 'disconnect', cause }),
  refused: ({ atMs, what, clientId, address, why }) => {
    return { at: toDate(atMs), event: 'refused', what, client_id: clientId, address, why };
  },
  uplink: uplinkJson,
  finding: ({ atMs, mac, finding }) => {
    return { at: toDate(atMs), mac: formatMac(mac), event: 'finding', finding: findingJson(finding) };
  },
  presence: ({ atMs, mac, presence }) => {
    return { at: toDate(atMs), mac: formatMac(mac), event: 'presence', ...presenceJson(presence) };
  },
  quarantined: ({ atMs, mac, code, message, bytes }) => {
    return {
      at: toDate(atMs),
      mac: formatMac(mac),
      event: 'quarantined',
      code,
      message,
      raw: bytes.toString('base64'),
    };
  },
  delivery: (event) => ({
    at: toDate(event.atMs),
    mac: formatMac(event.mac),
    event: 'delivery',
    event_id: event.eventId,
    url_id: event.urlId,
    attempt: event.number,
    outcome: event.outcome,
    status: event.status,
    duration_ms: event.durationMs,
    error: event.error,
    next_attempt_at: event.nextAttemptAtMs === null ? null : toDate(event.nextAttemptAtMs),
  }),
  'url-disabled': ({ atMs, urlId, why }) => ({ at: toDate(atMs), event: 'url-disabled', url_id: urlId, why }),
  'store-failed': ({ atMs, why }) => ({ at: toDate(atMs), event: 'store-failed', why }),
  'state-rebuilt': ({ atMs, mac, why, from }) => {
    return { at: toDate(atMs), mac: formatMac(mac), event: 'state-rebuilt', from, why };
  },
};

/** Presence, as lists and streams have it. */
export function presenceJson(presence: Presence): Readonly<Record<string, unknown>> {
  if (presence.presence === 'online') return { presence: 'online', since: toDate(presence.sinceMs) };
  if (presence.presence === 'late') return { presence: 'late', since: toDate(presence.sinceMs), rule: presence.rule };
  if (presence.presence !== 'asleep') return { presence: presence.presence };
  return { presence: 'asleep', due: presence.dueMs === null ? null : toDate(presence.dueMs) };
}

/** A finding, as lists and streams have it. */
export function findingJson({ rule, severity, message, about, atMs }: Finding): Readonly<Record<string, unknown>> {
  const uplink = about === null ? null : { credential: about.credential, boot: about.boot, sequence: about.sequence };
  return { rule, severity, message, at: toDate(atMs), uplink };
}

function uplinkJson(taken: UplinkTaken): EventJson {
  const { atMs, mac, eventId, uplink, buffered, repeated, simulated } = taken;
  const { boot, sequence, timeMs, power, kept, dropped, body } = uplink;
  const time = isDatable(timeMs) ? { date: toDate(timeMs) } : { time_ms: timeMs };
  const envelope = { boot, sequence, ...time, power: powerToJson(power), kept, dropped };
  const findings = taken.findings.map(findingJson);
  const head = { at: toDate(atMs), mac: formatMac(mac), buffered, repeated, simulated, findings };
  if (isPingUplink(uplink)) {
    const ping = { ...pingToJson(uplink.body), ...envelope };
    return { ...head, event: 'ping', source: 'lock', event_id: eventId, ping };
  }
  if (body.kind !== 'ack') throw new Error('an uplink is a ping or an acknowledgement');
  return { ...head, event: 'ack', ack: { id: body.commandId, result: body.result, detail: body.detail, ...envelope } };
}

/** Calls `listener` with every event from now on; returns the function that ends it. */
export function listenToAll(events: GatewayEvents, listener: (event: EventJson) => void): () => void {
  const names = Object.keys(WRITERS) as (keyof GatewayEventMap)[];
  const undo = names.map((name) => {
    const write = WRITERS[name] as (event: unknown) => EventJson;
    const handler = (event: unknown): void => listener(write(event));
    events.on(name, handler as never);
    return () => void events.off(name, handler as never);
  });
  return () => {
    for (const each of undo) each();
  };
}
