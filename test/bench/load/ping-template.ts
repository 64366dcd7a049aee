/**
 * An encoded ping, used as a template: its sequence and time, which differ in each ping, have a fixed length, so that a
 * load generator can overwrite them in place without knowing the protocol. It is the cellular ping of a lock that moves
 * while ride tracking is on, since the rules of the power model limit the rate of other pings.
 */
import { systemClock } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { CellularPing, Uplink } from '../../../proto/wire/ping.js';

/**
 * The number before the first ping's. Pings are numbered from 1, as protocol.md §1 says: a boot whose first numbers are
 * missing costs the judge more, since they may still come late.
 */
export const SEQUENCE_BEFORE_FIRST = 0;
/** Sequences are varints of three bytes, small ones with leading zeros; from this one on they would need four. */
export const SEQUENCE_LIMIT = 2 ** 21;
export const SEQUENCE_BYTES = 3;
/** A sequence whose shortest varint has {@link SEQUENCE_BYTES} bytes. */
export const LONG_SEQUENCE = 2 ** 14;
/** Times of the years 2005 to 2109 are varints of six bytes. */
export const TIME_BYTES = 6;

/** A field's number and type on the wire, before its value. */
const TAG_BYTES = 1;

const RIDE_PING: CellularPing = Object.freeze({
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

/** The uplink (a lock's message) that the bench's locks send; it breaks no rule of the power model. */
export function rideUplink(boot: number, sequence: number, timeMs: number): Uplink {
  const power = { mode: 'MID', rideTracking: true, airplane: false, recovery: false } as const;
  return { boot, sequence, timeMs, power, kept: 0, dropped: 0, body: RIDE_PING };
}

/**
 * The template of the pings of one boot. Boot, sequence and time are the first fields on the wire, each after its tag.
 */
export function pingTemplate(boot: number): PingTemplate {
  const bytes = Buffer.from(encodeUplink(rideUplink(boot, LONG_SEQUENCE, systemClock.now())));
  const sequenceAt = TAG_BYTES + varintBytes(boot) + TAG_BYTES;
  return { bytes, sequenceAt, timeAt: sequenceAt + SEQUENCE_BYTES + TAG_BYTES };
}

/**
 * Writes a number as a varint of exactly `count` bytes: seven bits in each, lowest first, and the top bit (128) says
 * that a byte follows.
 */
export function writeVarint(bytes: Buffer, at: number, value: number, count: number): void {
  let remaining = value;
  for (let index = 0; index < count; index++) {
    bytes[at + index] = (remaining % 128) | (index < count - 1 ? 128 : 0);
    remaining = Math.floor(remaining / 128);
  }
}

/** The length of a number as a varint. */
function varintBytes(value: number): number {
  let count = 1;
  for (let remaining = value; remaining >= 128; remaining = Math.floor(remaining / 128)) count += 1;
  return count;
}

let bootsSoFar = 0;

/** A boot number that no other run on this machine uses, so that each ping's key is unique. */
export function newBootNumber(): number {
  bootsSoFar += 1;
  return (Math.floor(systemClock.now() / 1000) + bootsSoFar) % 2 ** 31;
}
