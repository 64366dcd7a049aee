/**
 * The fingerprint of an uplink: a digest of its content without its key (boot and sequence). Different contents have
 * the same fingerprint with a probability of 1 in 2⁵³. Fingerprints must not be stored: they may change between
 * versions.
 */
import { mixPing } from '../gen/ping-content.js';
import { digest, mix, mixNumber, mixText, startDigest } from './mixer.js';
import type { CommandAck, PowerSettings, Uplink } from './ping.js';

/**
 * The fingerprint of an uplink, an integer below 2⁵³. The members `kept` and `dropped` count the earlier uplinks
 * that still wait in the lock, and those that it has discarded because its buffer was full.
 */
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

/** Starts with a text, so that the digest of an acknowledgement differs from that of a ping with the same numbers. */
function mixAck(ack: CommandAck): void {
  mixText(ack.result);
  mix(ack.commandId);
  mixText(ack.detail);
  if (ack.highWindow === null) return;
  mix(ack.highWindow.fromMinute);
  mix(ack.highWindow.toMinute);
  mix(ack.highWindow.utcOffsetMinutes);
}
