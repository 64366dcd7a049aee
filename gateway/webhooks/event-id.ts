/**
 * The id of an event: the uplink's name (protocol.md §1) and the beginning of its content's hash, as text.
 *
 * It is made from the uplink alone. So the same uplink has the same id however late and however often it arrives, after
 * a crash and in another store; two uplinks that claim one name with other content have two ids; and an event is found
 * by the index of names, without one for ids.
 */
import { hash } from 'node:crypto';
import { type Mac, macFromWire } from '../../proto/wire/mac.js';

/** How many bytes of the SHA-256 tell contents apart. */
const DIGEST_BYTES = 8;

export interface EventName {
  readonly mac: Mac;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  readonly digest: Buffer;
}

/** The first 8 bytes of the SHA-256 of an uplink's bytes. */
export function digestOf(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer').subarray(0, DIGEST_BYTES);
}

/** For example `evt_A4C138F0E1D2_1_41_12_9f3a2c1b00d4e5f6`. It holds no dot, which Standard Webhooks forbids in ids. */
export function eventId(name: EventName): string {
  return `evt_${name.mac}_${name.credentialId}_${name.boot}_${name.sequence}_${name.digest.toString('hex')}`;
}

const EVENT_ID = /^evt_([0-9A-F]{12})_(\d{1,15})_(\d{1,10})_(\d{1,10})_([0-9a-f]{16})$/;

/** What an event id names; undefined where the text is none. */
export function parseEventId(text: string): EventName | undefined {
  const match = EVENT_ID.exec(text);
  if (match === null) return undefined;
  const [, mac = '', credentialId, boot, sequence, digest = ''] = match;
  return {
    mac: macFromWire(mac) as Mac,
    credentialId: Number(credentialId),
    boot: Number(boot),
    sequence: Number(sequence),
    digest: Buffer.from(digest, 'hex'),
  };
}
