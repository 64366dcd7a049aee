/**
 * What the index of the log by lock says of each uplink: a number (the hint) from which follows that a scan does not
 * want the uplink, so that its row need not be read. The rows of a lock are scattered over the log, each on a page of
 * its own, but its hints are together on a few pages. A hint only saves reads: whatever a scan returns is decided by
 * the row, and an uplink without a hint is read. Pure.
 */
import { decodeUplink } from '../../../proto/wire/codec.js';
import { REASONS } from '../../../proto/wire/reasons.js';

/**
 * The bits, from the lowest: 2 kind, 1 buffered, 1 ahead, 4 reason, 4 power settings, 7 battery, 8 check. Shipped:
 * must not change, since hints are stored.
 */
const [BUFFERED, AHEAD] = [1 << 2, 1 << 3];
const [REASON_SHIFT, POWER_SHIFT, BATTERY_SHIFT, CHECK_SHIFT] = [4, 8, 12, 19];
const [REASON_MASK, POWER_MASK, BATTERY_MASK, CHECK_MASK] = [0xf, 0xf, 0x7f, 0xff];
const CONTENT_MASK = (1 << CHECK_SHIFT) - 1;
/**
 * The number in a hint for every reason above the last one that existed when hints were introduced, so that stored
 * hints stay right when the table of reasons gets longer.
 */
const OTHER_REASON = 15;
const LAST_HINTED_REASON = 11;
/** The battery of an acknowledgement, which says nothing about it. */
const NO_BATTERY = 127;

const REASON_NUMBERS: ReadonlyMap<string, number> = new Map(
  REASONS.filter(({ number }) => number <= LAST_HINTED_REASON).map(({ name, number }) => [name, number]),
);

/** The columns of an uplink of a lock (not of a phone) that its hint is made of. */
export interface HintedRow {
  readonly id: number;
  readonly device_id: number;
  readonly kind: number;
  readonly bytes: Uint8Array;
  readonly received_at_ms: number;
  readonly buffered: number;
}

/** The hint of a row of the log; null if it is no uplink, is erased, or has a content that the bits can’t express. */
export function uplinkHint({ id, device_id, kind, bytes, received_at_ms, buffered }: HintedRow): number | null {
  if (kind < 0 || kind > 3) return null;
  const decoded = decodeUplink(bytes);
  if (!decoded.ok) return null;
  const { timeMs, power, body } = decoded.value;
  const batteryPercent = body.kind === 'ack' ? NO_BATTERY : body.batteryPercent;
  if (batteryPercent >= NO_BATTERY && body.kind !== 'ack') return null;
  const reason = body.kind === 'ack' ? 0 : (REASON_NUMBERS.get(body.reason) ?? OTHER_REASON);
  const { mode, rideTracking, airplane, recovery } = power;
  const settings = (mode === 'HIGH' ? 1 : 0) | (rideTracking ? 2 : 0) | (airplane ? 4 : 0) | (recovery ? 8 : 0);
  const content =
    kind |
    (buffered === 1 ? BUFFERED : 0) |
    (timeMs > received_at_ms ? AHEAD : 0) |
    (reason << REASON_SHIFT) |
    (settings << POWER_SHIFT) |
    (batteryPercent << BATTERY_SHIFT);
  return content | (checkOf(content, device_id, id) << CHECK_SHIFT);
}

/** Rows of the index have no checksum, so eight bits of a hint reveal most changes of it on the disk. */
function checkOf(content: number, deviceId: number, id: number): number {
  return Math.imul(content ^ Math.imul(deviceId, 0x85eb_ca6b) ^ Math.imul(id, 0xc2b2_ae35), 0x9e37_79b1) >>> 24;
}

/** The hint, if it was made of this uplink; undefined if it is missing or was changed. */
export function validHint(hint: number | null, deviceId: number, id: number): number | undefined {
  if (hint === null) return undefined;
  return ((hint >> CHECK_SHIFT) & CHECK_MASK) === checkOf(hint & CONTENT_MASK, deviceId, id) ? hint : undefined;
}

/** The index into `UPLINK_KINDS`. */
export function hintedKind(hint: number): number {
  return hint & 3;
}

export function isHintedBuffered(hint: number): boolean {
  return (hint & BUFFERED) !== 0;
}

/** Whether the lock dated the uplink later than it was received. */
export function isHintedAhead(hint: number): boolean {
  return (hint & AHEAD) !== 0;
}

/** Returns a test whether an uplink with this hint may have one of the reasons. */
export function hintedReasons(reasons: readonly string[]): (hint: number) => boolean {
  const numbers = new Set([OTHER_REASON, ...reasons.map((name) => REASON_NUMBERS.get(name) ?? OTHER_REASON)]);
  return (hint) => numbers.has((hint >> REASON_SHIFT) & REASON_MASK);
}

/** What the hints of a lock's uplinks said last of its power settings and battery. */
export interface HintedState {
  readonly settings: number;
  readonly battery: number;
}

/** What is known after an uplink with this hint. @param before undefined if nothing is known */
export function hintedStateAfter(before: HintedState | undefined, hint: number): HintedState {
  const battery = (hint >> BATTERY_SHIFT) & BATTERY_MASK;
  return {
    settings: (hint >> POWER_SHIFT) & POWER_MASK,
    battery: battery === NO_BATTERY ? (before?.battery ?? NO_BATTERY) : battery,
  };
}

/** Whether an uplink with this hint repeats what is known. */
export function repeatsState(before: HintedState | undefined, hint: number): boolean {
  if (before === undefined) return false;
  const after = hintedStateAfter(before, hint);
  return after.settings === before.settings && after.battery === before.battery;
}
