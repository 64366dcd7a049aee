/**
 * Leaves out of a lock's log what says nothing new about the lock's power state. Most uplinks of a lock repeat the
 * power settings and the battery of the one before, so what is left is short. Pure.
 */
import { decodeUplink } from '../../../proto/wire/codec.js';
import type { PowerSettings } from '../../../proto/wire/ping.js';
import type { LogEntry } from '../contract/log/log-entry.js';

/** The power settings and the battery of the uplinks so far; undefined before the first uplink that has them. */
interface Said {
  power: PowerSettings | undefined;
  batteryPercent: number | undefined;
}

/**
 * The entries without the uplinks that repeat the power settings and the battery of the lock's uplink before them.
 * Connection events, a phone's uplinks and damaged ones stay.
 *
 * @param entries of one lock, oldest first; the first one stays
 */
export function stateChanges(entries: readonly LogEntry[]): LogEntry[] {
  const said: Said = { power: undefined, batteryPercent: undefined };
  return entries.filter((entry, index) => saysNew(entry, said) || index === 0);
}

/** Whether the entry is to stay. Notes what it says. */
function saysNew(entry: LogEntry, said: Said): boolean {
  if (entry.type !== 'uplink' || entry.uplink.source !== 'lock' || entry.uplink.isDamaged) return true;
  const decoded = decodeUplink(entry.uplink.bytes);
  if (!decoded.ok) return true;
  const { power, body } = decoded.value;
  // An acknowledgement says nothing about the battery.
  const batteryPercent = body.kind === 'ack' ? said.batteryPercent : body.batteryPercent;
  const isRepeated =
    said.power !== undefined && isSamePower(said.power, power) && said.batteryPercent === batteryPercent;
  said.power = power;
  said.batteryPercent = batteryPercent;
  return !isRepeated;
}

function isSamePower(one: PowerSettings, other: PowerSettings): boolean {
  return (
    one.mode === other.mode &&
    one.rideTracking === other.rideTracking &&
    one.airplane === other.airplane &&
    one.recovery === other.recovery
  );
}
