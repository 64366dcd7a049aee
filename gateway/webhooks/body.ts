/**
 * The body of a webhook: one flat JSON object for a ping (interfaces.md §3).
 *
 * It is made when it is sent, from the uplink's bytes in the log, and comes out the same on every attempt.
 */
import { decodeUplink } from '../../proto/codec.js';
import { formatMac } from '../../proto/mac.js';
import { isPingUplink, type PingUplink } from '../../proto/ping.js';
import { isDatable, type PingJson, pingToJson, toDate } from '../../proto/ping-json.js';
import { eventId } from '../event-id.js';
import type { StoredUplink } from '../store/store.js';

export interface WebhookBody extends PingJson {
  event_id: string;
  mac_addr: string;
  /** When the lock made it; where its clock is outside the years 1970–9999, when it was received. RFC 3339, UTC. */
  date: string;
  received_at: string;
  boot: number;
  sequence: number;
  /** It arrived over 60 s after its time. */
  buffered: boolean;
  /** Sent by a test, not by a lock. */
  test: boolean;
  /** Sent by a lock that a simulator plays. */
  simulated: boolean;
}

/** The body for a stored ping. */
export function webhookBody(stored: StoredUplink): WebhookBody {
  const uplink = readStored(stored);
  const { ping_type, reason, ...members } = pingToJson(uplink.body);
  return {
    event_id: eventId(stored),
    mac_addr: formatMac(stored.mac),
    ping_type,
    reason,
    date: toDate(isDatable(uplink.timeMs) ? uplink.timeMs : stored.receivedAtMs),
    ...members,
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
  const decoded = decodeUplink(stored.bytes);
  if (decoded.ok && isPingUplink(decoded.value)) return decoded.value as PingUplink;
  throw new Error(`uplink ${stored.id} in the log is no ping${decoded.ok ? '' : `: ${decoded.error.message}`}`);
}
