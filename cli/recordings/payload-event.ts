/** Turns the payload of an uplink (a message of a lock) or of a command to a lock into an event of a trace. */
import { ok, type Result } from '../../proto/errors.js';
import { decodeDownlink, decodeUplink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { RecordedEvent } from './recording.js';
import type { Sender } from './sender.js';

/** A ping or an acknowledgement with its bytes; an error if the bytes can't be decoded. */
export function uplinkEvent({ mac, source }: Sender, atMs: number, bytes: Uint8Array): Result<RecordedEvent> {
  const decoded = decodeUplink(bytes);
  if (!decoded.ok) return decoded;
  const { body } = decoded.value;
  const event =
    body.kind === 'ack'
      ? ({ event: 'ack', mac, source, atMs, uplink: { ...decoded.value, body } } as const)
      : ({ event: 'ping', mac, source, atMs, uplink: { ...decoded.value, body } } as const);
  // Copied, because the reader may overwrite the buffer that contains the bytes.
  return ok({ event, raw: Uint8Array.from(bytes) });
}

/** A command to a lock; an error if the bytes can't be decoded. */
export function commandEvent(mac: Mac, atMs: number, bytes: Uint8Array): Result<RecordedEvent> {
  const decoded = decodeDownlink(bytes);
  if (!decoded.ok) return decoded;
  const { id, command, expiresMs } = decoded.value;
  return ok({ event: { event: 'command', mac, atMs, id, command, expiresMs } });
}

/** Reasons for skipping a row that several readers use. */
export const UNREADABLE_UPLINK = 'an uplink that can’t be read';
export const UNREADABLE_COMMAND = 'a command that can’t be read';
export const UNKNOWN_SENDER = 'an uplink or command of an unknown lock (--mac MAC names it)';

/** Pairs of hexadecimal digits, such as `0801A4`; also the empty text. */
const HEX = /^(?:[0-9a-f]{2})*$/i;

/** The bytes of hex text; undefined for any other text. */
export function bytesOfHex(text: string): Uint8Array | undefined {
  return HEX.test(text) ? Buffer.from(text, 'hex') : undefined;
}
