/**
 * Makes the body of a webhook: one flat JSON object for a ping (interfaces.md §3).
 *
 * The body is made for each attempt from the uplink's bytes in the log, and is the same on every attempt. Pure.
 */
import { decodeUplink } from '../../../proto/wire/codec.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { isPingUplink, type PingUplink } from '../../../proto/wire/ping.js';
import { formatDate, isDatable, pingToJson } from '../../../proto/wire/ping-json.js';
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import { eventId } from '../event-id.js';
import type { WebhookPayload } from './schema.js';

/** The body for a stored ping, as payload/schema.ts describes it. @throws Error if the stored ping is damaged */
export function webhookBody(stored: StoredUplink): WebhookPayload {
  const uplink = readStored(stored);
  const ping = pingToJson(uplink.body);
  // Type and reason come before the date, as in the documentation; the ping's members, these two among them, follow.
  const first = { ping_type: ping.ping_type, reason: ping.reason };
  return {
    event_id: eventId(stored),
    mac_addr: formatMac(stored.mac),
    ...first,
    date: formatDate(isDatable(uplink.timeMs) ? uplink.timeMs : stored.receivedAtMs),
    ...ping,
    received_at: formatDate(stored.receivedAtMs),
    boot: stored.boot,
    sequence: stored.sequence,
    buffered: stored.buffered,
    test: false,
    simulated: stored.simulated,
  };
}

/** Decodes a stored ping. The log has only decodable uplinks, so one that can't be decoded shows a damaged store. */
function readStored(stored: StoredUplink): PingUplink {
  if (stored.isDamaged) throw new Error(`uplink ${stored.id} in the log does not match its checksum`);
  const decoded = decodeUplink(stored.bytes);
  if (decoded.ok && isPingUplink(decoded.value)) return decoded.value as PingUplink;
  throw new Error(`uplink ${stored.id} in the log is not a ping${decoded.ok ? '' : `: ${decoded.error.message}`}`);
}
