/**
 * An encoded cellular ping of a ride, which may come at any rate, used as a template: sequence and time, which change
 * from ping to ping, have a fixed length, so that a load generator can patch them in place without knowing the
 * protocol.
 */
import { systemClock } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { CellularPing, Uplink } from '../../../proto/wire/ping.js';

/** Sequences from here to {@link SEQUENCE_LIMIT} are varints of three bytes. */
export const FIRST_SEQUENCE = 2 ** 14;
export const SEQUENCE_LIMIT = 2 ** 21;
export const SEQUENCE_BYTES = 3;
/** Times of the years 2005 to 2109 are varints of six bytes. */
export const TIME_BYTES = 6;

const TAG_BYTES = 1;

const RIDE: CellularPing = Object.freeze({
  kind: 'cellular',
  reason: 'REASON_UNLOCKED_MOVEMENT',
  lockState: 'unlocked',
  batteryPercent: 81,
  ebikeVolts: null,
  tetherState: 'detached',
  firmwareVersion: '2.4.1-lockgate-bench',
  position: null,
});

/** An uplink's bytes, and the offsets of sequence and time in them. */
export interface PingTemplate {
  readonly bytes: Buffer;
  readonly sequenceAt: number;
  readonly timeAt: number;
}

/** The uplink that the bench's locks send; it breaks no rule of `judge`. */
export function rideUplink(boot: number, sequence: number, timeMs: number): Uplink {
  const power = { mode: 'MID', rideTracking: true, airplane: false, recovery: false } as const;
  return { boot, sequence, timeMs, power, kept: 0, dropped: 0, body: RIDE };
}

/**
 * The template of the pings of one boot. Boot, sequence and time are the first fields on the wire, each after its tag.
 */
export function pingTemplate(boot: number): PingTemplate {
  const bytes = Buffer.from(encodeUplink(rideUplink(boot, FIRST_SEQUENCE, systemClock.now())));
  const sequenceAt = TAG_BYTES + varintBytes(boot) + TAG_BYTES;
  return { bytes, sequenceAt, timeAt: sequenceAt + SEQUENCE_BYTES + TAG_BYTES };
}

/** Writes a number as a varint of exactly `count` bytes. */
export function putVarint(bytes: Buffer, at: number, value: number, count: number): void {
  let left = value;
  for (let index = 0; index < count; index++) {
    bytes[at + index] = (left % 128) | (index < count - 1 ? 128 : 0);
    left = Math.floor(left / 128);
  }
}

function varintBytes(value: number): number {
  let count = 1;
  for (let left = value; left >= 128; left = Math.floor(left / 128)) count += 1;
  return count;
}

let boots = 0;

/** A boot number that no other run on this machine uses, so that each ping's key is unique. */
export function nextBoot(): number {
  boots += 1;
  return (Math.floor(systemClock.now() / 1000) + boots) % 2 ** 31;
}
