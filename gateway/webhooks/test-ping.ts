/**
 * Makes the pings of test webhooks, in the form of stored uplinks: a plausible first ping of a lock, or a ping that an
 * operator gives. No lock sent these pings, so they have neither a row in the log nor a credential.
 */
import { LockgateError } from '../../proto/errors.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { encodeUplink, UPLINK_MAX_BYTES } from '../../proto/wire/codec.js';
import { DEFAULT_POWER, isPingUplink, type PingUplink } from '../../proto/wire/ping.js';
import { uplinkFromJson } from '../../proto/wire/ping-from-json.js';
import type { Device } from '../store/contract/devices/device.js';
import { UPLINK_KINDS } from '../store/contract/log/commit.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import { uplinkDigest } from './event-id.js';

/** A cellular ping of a locked lock at this moment, for a lock that has not sent anything yet. */
export function plausiblePing(device: Device, nowMs: number): StoredUplink {
  const envelope = { boot: 1, sequence: 1, timeMs: nowMs, power: DEFAULT_POWER, kept: 0, dropped: 0 };
  const uplink: PingUplink = {
    ...envelope,
    body: {
      kind: 'cellular',
      reason: 'REASON_STATE_PING',
      lockState: 'locked',
      batteryPercent: 80,
      firmwareVersion: '1.0.0',
      ebikeVolts: null,
      tetherState: 'detached',
      position: null,
    },
  };
  return asStored(device, { uplink, receivedAtMs: nowMs });
}

/** A ping that an operator gives, and its time of receipt, ms since the epoch. */
export interface GivenPing {
  readonly uplink: PingUplink;
  readonly receivedAtMs: number;
}

/** Reads a ping with its envelope from the JSON of traces. @throws LockgateError `input-ping` */
export function readGivenPing(json: unknown): PingUplink {
  const uplink = uplinkFromJson(json, 'ping');
  if (!uplink.ok) throw new LockgateError('input-ping', uplink.error.message);
  if (!isPingUplink(uplink.value)) throw new LockgateError('input-ping', 'ping is an acknowledgement: expected a ping');
  return uplink.value;
}

/** The given ping as a stored uplink of the lock. @throws LockgateError `input-ping` if no lock could send the ping */
export function givenPing(device: Device, given: GivenPing): StoredUplink {
  try {
    return asStored(device, given);
  } catch (error) {
    if (error instanceof LockgateError) throw new LockgateError('input-ping', `ping: ${error.message}`);
    throw error;
  }
}

/** The ping in the form of a stored uplink. @throws LockgateError if no lock could send the ping */
function asStored({ id: deviceId, merchantId, mac, simulated }: Device, ping: GivenPing): StoredUplink {
  const { uplink, receivedAtMs } = ping;
  const bytes = Buffer.from(encodeUplink(uplink));
  if (bytes.length > UPLINK_MAX_BYTES)
    throw new LockgateError('input-ping', `it has ${bytes.length} bytes: a lock may send at most ${UPLINK_MAX_BYTES}`);
  const { boot, sequence, body } = uplink;
  const kind = UPLINK_KINDS.indexOf(body.kind);
  const sender = { id: 0, deviceId, merchantId, mac, simulated, credentialId: 0, source: 'lock' as const };
  const buffered = receivedAtMs - uplink.timeMs > POWER_MODEL.bounds.bufferedOver;
  return {
    ...sender,
    boot,
    sequence,
    kind,
    digest: uplinkDigest(bytes),
    bytes,
    receivedAtMs,
    buffered,
    isDamaged: false,
  };
}
