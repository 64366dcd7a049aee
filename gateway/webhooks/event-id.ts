/**
 * Makes and parses the id of an event, which is a stored uplink of a lock: the uplink's key (protocol.md §1) and the
 * start of its content's hash, as text. Pure.
 *
 * The id derives only from the uplink. So an uplink has the same id however late and often it arrives, also after a
 * crash or in another store. Two uplinks with the same key and different content have two ids. The store finds
 * an event by its index of keys and needs no index of ids.
 */
import { hash } from 'node:crypto';
import { type Mac, macFromWire } from '../../proto/wire/mac.js';

/** How many bytes of the SHA-256 the id contains. */
const DIGEST_BYTES = 8;

export interface EventKey {
  readonly mac: Mac;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  readonly digest: Buffer;
}

/** The first 8 bytes of the SHA-256 of an uplink's bytes. */
export function uplinkDigest(bytes: Uint8Array): Buffer {
  // By way of a text of one character a byte: a Buffer of its own for each hash costs four times as much.
  return Buffer.from(hash('sha256', bytes, 'binary').slice(0, DIGEST_BYTES), 'latin1');
}

/** For example `evt_A4C138F0E1D2_1_41_12_9f3a2c1b00d4e5f6`. It has no dot: Standard Webhooks forbids dots in ids. */
export function eventId(key: EventKey): string {
  return `evt_${key.mac}_${key.credentialId}_${key.boot}_${key.sequence}_${key.digest.toString('hex')}`;
}

const EVENT_ID = /^evt_([0-9A-F]{12})_(\d{1,15})_(\d{1,10})_(\d{1,10})_([0-9a-f]{16})$/;

/** The parts of an event id; undefined if the text is not an event id. */
export function parseEventId(text: string): EventKey | undefined {
  const match = EVENT_ID.exec(text);
  if (match === null) return undefined;
  const [, mac = '', credentialId, boot, sequence, digest = ''] = match;
  return {
    // The expression above accepts only 12 hex digits, which are always a MAC.
    mac: macFromWire(mac) as Mac,
    credentialId: Number(credentialId),
    boot: Number(boot),
    sequence: Number(sequence),
    digest: Buffer.from(digest, 'hex'),
  };
}
