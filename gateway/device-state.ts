/**
 * What is known of a lock from its uplinks. It follows the order of protocol.md §1 (age of the credential, boot,
 * sequence), never that of arrival: a late uplink adds what was missing and overwrites nothing newer.
 */
import {
  isPingUplink,
  type Ping,
  type PingUplink,
  type Position,
  type PowerSettings,
  type Uplink,
} from '../proto/ping.js';

/** The name of an uplink within its lock; compared member by member, it orders uplinks. */
export interface UplinkOrder {
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
}

/** The newest uplink, and what it says of the lock. */
export interface LatestUplink extends UplinkOrder {
  /** By the lock's clock, ms since the epoch. */
  readonly timeMs: number;
  /** By the run's clock. */
  readonly receivedAtMs: number;
  readonly power: PowerSettings;
}

export interface LatestPing extends UplinkOrder {
  readonly timeMs: number;
  readonly reason: Ping['reason'];
  readonly kind: Ping['kind'];
  readonly lockState: Ping['lockState'];
  readonly batteryPercent: number;
}

export interface LatestPosition extends UplinkOrder, Position {
  readonly timeMs: number;
}

export interface DeviceState {
  readonly uplink: LatestUplink;
  readonly ping: LatestPing | null;
  readonly position: LatestPosition | null;
}

/** −1, 0 or 1: where `a` stands to `b` in the order of a lock's uplinks (protocol.md §1). */
export function compareOrder(a: UplinkOrder, b: UplinkOrder): number {
  return Math.sign(a.credentialId - b.credentialId) || Math.sign(a.boot - b.boot) || Math.sign(a.sequence - b.sequence);
}

/** The state with one more uplink in it, whether it comes in order or late. */
export function withUplink(
  state: DeviceState | null,
  credentialId: number,
  uplink: Uplink,
  receivedAtMs: number,
): DeviceState {
  const order = { credentialId, boot: uplink.boot, sequence: uplink.sequence };
  const latest = { ...order, timeMs: uplink.timeMs, receivedAtMs, power: uplink.power };
  return {
    uplink: newer(state?.uplink, latest),
    ping: isPingUplink(uplink) ? newer(state?.ping, latestPing(order, uplink)) : (state?.ping ?? null),
    position: newerPosition(state?.position ?? null, order, uplink),
  };
}

function newer<T extends UplinkOrder>(known: T | null | undefined, next: T): T {
  return known !== null && known !== undefined && compareOrder(known, next) >= 0 ? known : next;
}

function latestPing(order: UplinkOrder, { timeMs, body }: PingUplink): LatestPing {
  const { reason, kind, lockState, batteryPercent } = body;
  return { ...order, timeMs, reason, kind, lockState, batteryPercent };
}

function newerPosition(known: LatestPosition | null, order: UplinkOrder, uplink: Uplink): LatestPosition | null {
  const { body } = uplink;
  if (body.kind !== 'gps' && (body.kind !== 'cellular' || body.position === null)) return known;
  return newer(known, { ...order, timeMs: uplink.timeMs, ...(body.position as Position) });
}
