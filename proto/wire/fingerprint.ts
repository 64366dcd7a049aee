/**
 * The fingerprint of an uplink: a digest of all that it says, but for its key (boot and sequence). Other content has
 * another fingerprint, but for a chance of 1 in 2⁵³. It stays in memory, so it may change from version to version.
 */
import { mixPing } from '../gen/ping-content.js';
import { digest, mix, mixNumber, mixText, startDigest } from './mixer.js';
import type { CommandAck, PowerSettings, Uplink } from './ping.js';

/** See the head of this file. */
export function fingerprintOf(uplink: Uplink): number {
  const { body } = uplink;
  startDigest();
  mixNumber(uplink.timeMs);
  mix(uplink.kept);
  mix(uplink.dropped);
  mixPower(uplink.power);
  if (body.kind === 'ack') mixAck(body);
  else mixPing(body);
  return digest();
}

function mixPower({ mode, rideTracking, airplane, recovery }: PowerSettings): void {
  mix((mode === 'HIGH' ? 1 : 0) + (rideTracking ? 2 : 0) + (airplane ? 4 : 0) + (recovery ? 8 : 0));
}

/** Starts with a text, as no ping does. */
function mixAck(ack: CommandAck): void {
  mixText(ack.result);
  mix(ack.commandId);
  mixText(ack.detail);
  if (ack.highWindow === null) return;
  mix(ack.highWindow.fromMinute);
  mix(ack.highWindow.toMinute);
  mix(ack.highWindow.utcOffsetMinutes);
}
