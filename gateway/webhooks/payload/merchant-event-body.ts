/**
 * Makes the body of a webhook for an event that is not a ping, from the content that was stored with its cause, so that
 * it is the same on every attempt. Pure.
 */
import { commandToJson } from '../../../proto/trace/writer.js';
import { formatMac } from '../../../proto/wire/mac.js';
import type { Command } from '../../../proto/wire/ping.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import {
  type BatteryContent,
  type CommandContent,
  eventTypeOf,
  type PresenceContent,
} from '../../store/contract/webhooks/merchant-event.js';
import { eventId } from '../event-id.js';
import type { CommandEnd, MerchantEventPayload } from './merchant-event-schema.js';

/** The body for a stored event that is not a ping. @throws Error if it is damaged */
export function merchantEventBody(stored: StoredUplink): MerchantEventPayload {
  if (stored.isDamaged) throw new Error(`event ${stored.id} in the log does not match its checksum`);
  // The bytes are as the gateway once stored them, so their content has the form that belongs to the type.
  const content = JSON.parse(stored.bytes.toString('utf8')) as unknown;
  const type = eventTypeOf(stored.kind);
  if (type === 'ping') throw new Error(`uplink ${stored.id} in the log is a ping`);
  const [event_id, mac_addr, date] = [eventId(stored), formatMac(stored.mac), formatDate(stored.receivedAtMs)];
  const last = { test: false, simulated: stored.simulated };
  if (type === 'command')
    return { event_id, type, mac_addr, date, ...commandMembers(content as CommandContent), ...last };
  if (type === 'presence') {
    const { presence, lateSinceMs } = content as PresenceContent;
    return { event_id, type, mac_addr, date, presence, late_since: formatDate(lateSinceMs), ...last };
  }
  const { battery, percent } = content as BatteryContent;
  return { event_id, type, mac_addr, date, battery, battery_percent: percent, ...last };
}

function commandMembers({ id, command, parameters, state, detail, askedBy, ...times }: CommandContent) {
  const { type, ...shown } = commandToJson({ type: command, ...parameters } as Command);
  const { createdAtMs, firstSentAtMs, sentCount } = times;
  return {
    command_id: id,
    command: type as Command['type'],
    parameters: shown as Record<string, unknown>,
    state: state as CommandEnd,
    detail,
    asked_by: askedBy,
    created_at: formatDate(createdAtMs),
    first_sent_at: firstSentAtMs === null ? null : formatDate(firstSentAtMs),
    sent_count: sentCount,
  };
}
