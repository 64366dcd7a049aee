/**
 * Converts the gateway's events to the JSON objects that the command `tail` streams. An event that traces contain has
 * the same name as in traces (protocol.md §4). Pure, except {@link listenToAll}.
 */
import type { Finding } from '../../../../proto/power/judge/event.js';
import type { Presence } from '../../../../proto/power/judge/presence.js';
import { commandToJson } from '../../../../proto/trace/writer.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { isPingUplink } from '../../../../proto/wire/ping.js';
import { formatDate, isDatable, pingToJson, powerToJson } from '../../../../proto/wire/ping-json.js';
import type { GatewayEventMap, GatewayEvents, UnstreamedEventName } from '../../../events.js';
import type { CommandChanged, UplinkTaken } from '../../../lock-events.js';

export type EventJson = Readonly<Record<string, unknown>> & { readonly at: string; readonly event: string };

/** The names of the streamed events; the other events are only counted in `/metrics`. */
type StreamedName = Exclude<keyof GatewayEventMap, UnstreamedEventName>;

type Converter<Name extends StreamedName> = (event: GatewayEventMap[Name][0]) => EventJson;

const CONVERTERS: { readonly [Name in StreamedName]: Converter<Name> } = {
  connected: ({ atMs, mac, source, simulated }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'connect', source, simulated };
  },
  disconnected: ({ atMs, mac, source, cause }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'disconnect', source, cause };
  },
  refused: ({ atMs, mac, what, clientId, address, why }) => {
    const lock = mac === null ? {} : { mac: formatMac(mac) };
    return { at: formatDate(atMs), ...lock, event: 'refused', what, client_id: clientId, address, why };
  },
  budget: ({ atMs, mac, source, state, why }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'budget', source, state, why };
  },
  judging: ({ atMs, mac, state, why }) => ({ at: formatDate(atMs), mac: formatMac(mac), event: 'judging', state, why }),
  uplink: uplinkJson,
  finding: ({ atMs, mac, finding }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'finding', finding: findingJson(finding) };
  },
  presence: ({ atMs, mac, presence }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'presence', ...presenceJson(presence) };
  },
  quarantined: ({ atMs, mac, code, message, bytes }) => {
    return {
      at: formatDate(atMs),
      mac: formatMac(mac),
      event: 'quarantined',
      code,
      message,
      raw: bytes.toString('base64'),
    };
  },
  delivery: (event) => ({
    at: formatDate(event.atMs),
    mac: formatMac(event.mac),
    event: 'delivery',
    event_id: event.eventId,
    url_id: event.urlId,
    attempt: event.number,
    outcome: event.outcome,
    status: event.status,
    duration_ms: event.durationMs,
    error: event.error,
    next_attempt_at: event.nextAttemptAtMs === null ? null : formatDate(event.nextAttemptAtMs),
  }),
  'event-damaged': ({ atMs, mac, eventId: id, urlId }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'event-damaged', event_id: id, url_id: urlId };
  },
  'url-disabled': ({ atMs, urlId, why }) => ({ at: formatDate(atMs), event: 'url-disabled', url_id: urlId, why }),
  'url-changed': ({ atMs, urlId, state }) => ({ at: formatDate(atMs), event: 'url-changed', url_id: urlId, state }),
  circuit: ({ atMs, urlId, state, why }) => ({ at: formatDate(atMs), event: 'circuit', url_id: urlId, state, why }),
  backlog: ({ atMs, urlId, state, why }) => ({ at: formatDate(atMs), event: 'backlog', url_id: urlId, state, why }),
  'cannot-send': ({ atMs, what, state, why }) => ({ at: formatDate(atMs), event: 'cannot-send', what, state, why }),
  'cannot-record': ({ atMs, urlId, state, why }) => {
    return { at: formatDate(atMs), event: 'cannot-record', url_id: urlId, state, why };
  },
  swept: ({ atMs, beforeMs, uplinks, others, held }) => {
    return { at: formatDate(atMs), event: 'swept', before: formatDate(beforeMs), uplinks, others, held };
  },
  command: commandChangedJson,
  'stray-ack': ({ atMs, mac, commandId, why }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'stray-ack', command_id: commandId, why };
  },
  'store-failed': ({ atMs, why }) => ({ at: formatDate(atMs), event: 'store-failed', why }),
  'store-broken': ({ atMs, why }) => ({ at: formatDate(atMs), event: 'store-broken', why }),
  degraded: ({ atMs, reason, why }) => ({ at: formatDate(atMs), event: 'degraded', reason, why }),
  recovered: ({ atMs, reason, lastedMs }) => ({
    at: formatDate(atMs),
    event: 'recovered',
    reason,
    lasted_ms: lastedMs,
  }),
  clock: ({ atMs, state, machineMs, confirmedMs, why }) => {
    const machine = isDatable(machineMs) ? formatDate(machineMs) : null;
    return { at: formatDate(atMs), event: 'clock', state, machine, confirmed: formatDate(confirmedMs), why };
  },
  'statement-closed': ({ atMs, merchant, month }) => {
    return { at: formatDate(atMs), event: 'statement-closed', merchant, month };
  },
  descriptors: ({ atMs, state, limit, why }) => ({ at: formatDate(atMs), event: 'descriptors', state, limit, why }),
  notices: ({ atMs, noted, unread }) => ({ at: formatDate(atMs), event: 'notices', noted, unread }),
  'notify-url': ({ atMs, merchant, state, why }) => {
    return { at: formatDate(atMs), event: 'notify-url', merchant: merchant?.name ?? null, state, why };
  },
  audited: ({ atMs, actor, address, osUser, merchant, user, key, action, object, outcome, code }) => {
    const who = { actor, address, os_user: osUser, merchant, user, key };
    return { at: formatDate(atMs), event: 'audited', ...who, action, object, outcome, code };
  },
  'state-rebuilt': ({ atMs, mac, why, from }) => {
    return { at: formatDate(atMs), mac: formatMac(mac), event: 'state-rebuilt', from, why };
  },
};

function commandChangedJson({ atMs, mac, record }: CommandChanged): EventJson {
  const { id, state, detail, sentCount } = record;
  const command = { id, ...commandToJson(record.command) };
  return { at: formatDate(atMs), mac: formatMac(mac), event: 'command', command, state, detail, sent_count: sentCount };
}

/** The JSON form of a presence, in lists and streams. */
export function presenceJson(presence: Presence): Readonly<Record<string, unknown>> {
  if (presence.presence === 'online') return { presence: 'online', since: formatDate(presence.sinceMs) };
  if (presence.presence === 'late')
    return { presence: 'late', since: formatDate(presence.sinceMs), rule: presence.rule };
  if (presence.presence !== 'asleep') return { presence: presence.presence };
  return { presence: 'asleep', due: presence.dueMs === null ? null : formatDate(presence.dueMs) };
}

/** The JSON form of a finding, in lists and streams. */
export function findingJson({ rule, severity, message, about, atMs }: Finding): Readonly<Record<string, unknown>> {
  const uplink = about === null ? null : { credential: about.credential, boot: about.boot, sequence: about.sequence };
  return { rule, severity, message, at: formatDate(atMs), uplink };
}

/** A ping or an acknowledgement; its members are those of a trace, then those that only the gateway knows. */
function uplinkJson(taken: UplinkTaken): EventJson {
  const { atMs, mac, source, eventId, uplink, bytes, buffered, repeated, simulated } = taken;
  const { boot, sequence, timeMs, power, kept, dropped, body } = uplink;
  const time = isDatable(timeMs) ? { date: formatDate(timeMs) } : { time_ms: timeMs };
  const envelope = { boot, sequence, ...time, power: powerToJson(power), kept, dropped };
  const raw = bytes.toString('base64');
  const findings = taken.findings.map(findingJson);
  const head = { at: formatDate(atMs), mac: formatMac(mac), buffered, repeated, simulated, findings };
  if (isPingUplink(uplink)) {
    const ping = { ...pingToJson(uplink.body), ...envelope };
    return { ...head, event: 'ping', source, event_id: eventId, ping, raw };
  }
  if (body.kind !== 'ack') throw new Error('an uplink is a ping or an acknowledgement');
  return {
    ...head,
    event: 'ack',
    source,
    ack: { id: body.commandId, result: body.result, detail: body.detail, ...envelope },
    raw,
  };
}

/** Calls `listener` with every event from now on; returns the function that unsubscribes. */
export function listenToAll(events: GatewayEvents, listener: (event: EventJson) => void): () => void {
  return tailOf(events)((toJson) => listener(toJson()));
}

/** All events, as functions that make their JSON when it is needed. */
export function tailOf(events: GatewayEvents): (listener: (toJson: () => EventJson) => void) => () => void {
  return (listener) => subscribe(events, listener);
}

function subscribe(events: GatewayEvents, listener: (toJson: () => EventJson) => void): () => void {
  const names = Object.keys(CONVERTERS) as StreamedName[];
  const unsubscribers = names.map((name) => {
    // TypeScript does not follow that the converter of a name gets only that name's events.
    const convert = CONVERTERS[name] as (event: unknown) => EventJson;
    const handler = (event: unknown): void => listener(() => convert(event));
    events.on(name, handler as never);
    return () => void events.off(name, handler as never);
  });
  return () => {
    for (const unsubscribe of unsubscribers) unsubscribe();
  };
}
