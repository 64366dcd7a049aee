/**
 * The body of a webhook: one flat JSON object for a ping (interfaces.md §3).
 *
 * It is made when it is sent, from the uplink's bytes in the log, and comes out the same on every attempt.
 */
import { decodeUplink } from '../../../proto/wire/codec.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { isPingUplink, type PingUplink } from '../../../proto/wire/ping.js';
import { isDatable, pingToJson, toDate } from '../../../proto/wire/ping-json.js';
import type { StoredUplink } from '../../store/contract/store.js';
import { eventId } from '../event-id.js';
import type { WebhookPayload } from './schema.js';

/** The body for a stored ping, as payload/schema.ts describes it. @throws Error where the stored ping is damaged */
export function webhookBody(stored: StoredUplink): WebhookPayload {
  const uplink = readStored(stored);
  const ping = pingToJson(uplink.body);
  // They stand before the date, as in the documentation; the ping, which has them too, comes after it.
  const first = { ping_type: ping.ping_type, reason: ping.reason };
  return {
    event_id: eventId(stored),
    mac_addr: formatMac(stored.mac),
    ...first,
    date: toDate(isDatable(uplink.timeMs) ? uplink.timeMs : stored.receivedAtMs),
    ...ping,
    received_at: toDate(stored.receivedAtMs),
    boot: stored.boot,
    sequence: stored.sequence,
    buffered: stored.buffered,
    test: false,
    simulated: stored.simulated,
  };
}

/** The log holds what decoded once; if it doesn't now, the store is damaged and that is not to be hidden. */
function readStored(stored: StoredUplink): PingUplink {
  if (stored.isDamaged) throw new Error(`uplink ${stored.id} in the log does not fit its checksum`);
  const decoded = decodeUplink(stored.bytes);
  if (decoded.ok && isPingUplink(decoded.value)) return decoded.value as PingUplink;
  throw new Error(`uplink ${stored.id} in the log is no ping${decoded.ok ? '' : `: ${decoded.error.message}`}`);
}
