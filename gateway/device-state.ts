/**
 * What is known of a lock: what `judge` believes of it, and its latest ping for lists. It is kept across restarts as
 * JSON beside the log, in the same commit as the uplink or event that it rests on.
 *
 * It follows the order of protocol.md §1 (age of the credential, boot, sequence), never that of arrival: a late uplink
 * adds what was missing and overwrites nothing newer.
 */

import { formatMac, type Mac } from '../proto/mac.js';
import type { Ping, Source, Uplink } from '../proto/ping.js';
import { isPingUplink } from '../proto/ping.js';
import { type Belief, isAfter, isSame, newBelief } from '../proto/power-judge-belief.js';
import type { UplinkName } from '../proto/power-judge-event.js';
import { POWER_MODEL } from '../proto/power-model.js';

export interface LatestPing extends UplinkName {
  /** By the lock's clock, ms since the epoch. */
  readonly timeMs: number;
  readonly reason: Ping['reason'];
  readonly kind: Ping['kind'];
}

export interface DeviceState {
  readonly belief: Belief;
  ping: LatestPing | null;
  /** When the lock's last uplink came, by the run's clock; null where none did. */
  receivedAtMs: number | null;
  /**
   * Names up to this one may have been used before what was known of the lock was forgotten. They are looked up in the
   * log, as the belief no longer knows of them. Absent where nothing was forgotten.
   */
  readonly usedTo?: UplinkName;
}

/** The state of a lock that was never heard of. `listeningSinceMs`: since when the gateway listens for it. */
export function newDeviceState(mac: Mac, atMs: number, listeningSinceMs: number): DeviceState {
  const belief = newBelief(POWER_MODEL, formatMac(mac), atMs, { listeningSinceMs });
  return { belief, ping: null, receivedAtMs: null };
}

/** The state of a lock of which nothing is to be known any more, but that names were used. */
export function forgottenState(known: DeviceState, mac: Mac, nowMs: number): DeviceState {
  const { powerFrom } = known.belief;
  const { usedTo } = known;
  const isNewer = usedTo === undefined || isAfter(usedTo, powerFrom.credential, powerFrom.boot, powerFrom.sequence);
  return { ...newDeviceState(mac, nowMs, nowMs), usedTo: isNewer ? { ...powerFrom } : usedTo };
}

/**
 * Whether a name was certainly never used, because it comes after all others of the lock. Most uplinks do, and need no
 * look into the log. A phone counts for itself, whatever its credential's age beside the lock's: it is looked up.
 */
export function isNewest(state: DeviceState, source: Source, { credential, boot, sequence }: UplinkName): boolean {
  if (source === 'phone' || !isAfter(state.belief.powerFrom, credential, boot, sequence)) return false;
  return state.usedTo === undefined || isAfter(state.usedTo, credential, boot, sequence);
}

/** Reads what {@link DeviceState} was stored as. */
export function parseDeviceState(json: string): DeviceState {
  return JSON.parse(json) as DeviceState;
}

/** Notes that an uplink of the lock's own came: the ping, where it is the latest in the order of protocol.md §1. */
export function noteUplink(state: DeviceState, credential: number, uplink: Uplink, receivedAtMs: number): void {
  state.receivedAtMs = receivedAtMs;
  if (!isPingUplink(uplink)) return;
  const { boot, sequence, timeMs, body } = uplink;
  const ping: LatestPing = { credential, boot, sequence, timeMs, reason: body.reason, kind: body.kind };
  if (state.ping === null || isAfter(state.ping, credential, boot, sequence) || isGreater(ping, state.ping))
    state.ping = ping;
}

/**
 * Of two pings of one name that contradict each other the greater counts: that is arbitrary, but it is the same in
 * whatever order they come (protocol.md §3, "Late data").
 */
function isGreater(ping: LatestPing, known: LatestPing): boolean {
  if (!isSame(known, ping.credential, ping.boot, ping.sequence)) return false;
  if (ping.timeMs !== known.timeMs) return ping.timeMs > known.timeMs;
  return `${ping.kind} ${ping.reason}` > `${known.kind} ${known.reason}`;
}
