/**
 * Finds where one MQTT packet ends and the next starts (MQTT 3.1.1, 2.2), without buffering: a packet that will be too
 * long is recognised by its fixed header, before its body has arrived.
 */

import type { RefusalCause } from '../refusals/refusal-reason.js';
import { flagsFault, PacketFields } from './packet-fields.js';

/** The packet types that clients send (MQTT 3.1.1, 2.2.1). */
const CONNECT = 1;
const PUBLISH = 3;
const PUBACK = 4;
const SUBSCRIBE = 8;
const UNSUBSCRIBE = 10;
const PINGREQ = 12;
const DISCONNECT = 14;

/** The first byte of a PUBLISH at QoS 1 that is not retained, without and with DUP (MQTT 3.1.1, 3.3.1). */
const FIRST_PUBLISH = (PUBLISH << 4) | 0b0010;
const REPEATED_PUBLISH = (PUBLISH << 4) | 0b1010;

/** What may follow a CONNECT: PUBREC, PUBREL and PUBCOMP belong to QoS 2, which is refused. */
const ALLOWED_AFTER_CONNECT = new Set([PUBLISH, PUBACK, SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT]);

/** A packet's length takes 1 to 4 bytes of 7 bits each (MQTT 3.1.1, 2.2.3). */
const LENGTH_BYTES = 4;

/** What the first bytes of a connection contain. */
export type FirstPacket =
  | { readonly state: 'incomplete' /** The packet's size in bytes, once known. */; readonly size: number | undefined }
  | { readonly state: 'complete'; readonly size: number }
  | { readonly state: 'fault'; readonly fault: RefusalCause };

/** Inspects the first bytes of a connection. The first packet must be a CONNECT that announces at most `most` bytes. */
export function firstPacket(bytes: Uint8Array, most: number): FirstPacket {
  const header = bytes[0];
  if (header === undefined) return { state: 'incomplete', size: undefined };
  if (header >> 4 !== CONNECT)
    return faulty({ reason: 'not-connect', why: `the first packet is ${nameOf(header)}, not a CONNECT` });
  if (header !== CONNECT << 4)
    return faulty({ reason: 'malformed', why: 'the first packet has flags that no CONNECT has' });
  let length = 0;
  for (let index = 1; index <= LENGTH_BYTES; index++) {
    const byte = bytes[index];
    if (byte === undefined) return { state: 'incomplete', size: undefined };
    length += (byte & 0x7f) << (7 * (index - 1));
    if (byte >= 0x80) continue;
    if (length > most) return faulty(tooLong(length, most));
    const size = 1 + index + length;
    return { state: bytes.length < size ? 'incomplete' : 'complete', size };
  }
  return faulty(LENGTH_FAULT);
}

function faulty(fault: RefusalCause): FirstPacket {
  return { state: 'fault', fault };
}

const LENGTH_FAULT: RefusalCause = {
  reason: 'packet',
  why: `a packet's length has more than ${LENGTH_BYTES} bytes`,
};

function tooLong(length: number, most: number): RefusalCause {
  const [announced, taken] = [length.toLocaleString('en'), most.toLocaleString('en')];
  return { reason: 'packet', why: `a packet announces ${announced} bytes: at most ${taken} are taken` };
}

/** Follows the packets of a connection, however they are cut into chunks. */
export class FrameCounter {
  /** How many packets are complete. */
  complete = 0;
  /** Offset of the first packet that started in the last chunk; the chunk's length where none did. */
  firstPacketAt = 0;
  /** How many bytes of the current packet's body are still missing. */
  #left = 0;
  /** How many bytes of a fixed header have arrived; 0 between packets and within a body. */
  #headerBytes = 0;
  #header = 0;
  #length = 0;
  readonly #fields = new PacketFields();

  /**
   * Takes the next chunk. Returns what is wrong with it, if anything: a packet of more than `most` bytes, one that no
   * client may send, one that is malformed (packet-fields.ts).
   */
  pass(piece: Uint8Array, most: number): RefusalCause | undefined {
    this.firstPacketAt = piece.length;
    for (let at = 0; at < piece.length; ) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, piece.length - at);
        const fault = this.#fields.pass(piece, at, at + taken);
        if (fault !== undefined) return fault;
        at += taken;
        this.#left -= taken;
        if (this.#left === 0) this.complete += 1;
        continue;
      }
      if (this.#headerBytes === 0 && at < this.firstPacketAt) this.firstPacketAt = at;
      const fault = this.#passHeaderByte(piece[at] as number, most);
      if (fault !== undefined) return fault;
      at += 1;
    }
    return undefined;
  }

  #passHeaderByte(byte: number, most: number): RefusalCause | undefined {
    if (this.#headerBytes === 0) {
      if (!ALLOWED_AFTER_CONNECT.has(byte >> 4))
        return { reason: 'packet', why: `${nameOf(byte)} is not taken after a CONNECT` };
      this.#headerBytes = 1;
      this.#header = byte;
      this.#length = 0;
      return flagsFault(byte);
    }
    this.#length += (byte & 0x7f) << (7 * (this.#headerBytes - 1));
    if (byte >= 0x80) {
      this.#headerBytes += 1;
      return this.#headerBytes > LENGTH_BYTES ? LENGTH_FAULT : undefined;
    }
    if (this.#length > most) return tooLong(this.#length, most);
    this.#headerBytes = 0;
    this.#left = this.#length;
    if (this.#length === 0) this.complete += 1;
    return this.#fields.begin(this.#header, this.#length);
  }
}

/** Offset of a packet's body. `packet` starts with its complete fixed header. */
export function bodyOffset(packet: Uint8Array): number {
  let at = 1;
  while ((packet[at] as number) >= 0x80) at += 1;
  return at + 1;
}

/** Where the packet that starts at `at` ends; 0 where it is incomplete. A {@link FrameCounter} has accepted it. */
export function packetEnd(piece: Uint8Array, at: number): number {
  let length = 0;
  for (let index = at + 1, shift = 0; index < piece.length; index++, shift += 7) {
    const byte = piece[index] as number;
    length += (byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    const end = index + 1 + length;
    return end <= piece.length ? end : 0;
  }
  return 0;
}

/**
 * Offset of the payload of an ordinary uplink: a PUBLISH to `topic` at QoS 1, not retained. 0 for any other packet. The
 * packet reaches from `at` to `end`; its id is in the two bytes before the payload. A {@link FrameCounter} has accepted
 * it, so the id is not 0.
 */
export function uplinkPayloadOffset(piece: Uint8Array, at: number, end: number, topic: Uint8Array): number {
  const header = piece[at];
  if (header !== FIRST_PUBLISH && header !== REPEATED_PUBLISH) return 0;
  let topicAt = at + 1;
  while ((piece[topicAt] as number) >= 0x80) topicAt += 1;
  topicAt += 3;
  const idAt = topicAt + topic.length;
  if (idAt + 2 > end || piece[topicAt - 2] !== topic.length >> 8 || piece[topicAt - 1] !== (topic.length & 0xff))
    return 0;
  for (let index = 0; index < topic.length; index++) if (piece[topicAt + index] !== topic[index]) return 0;
  return idAt + 2;
}

const NAMES = [
  'a packet of type 0',
  'a CONNECT',
  'a CONNACK',
  'a PUBLISH',
  'a PUBACK',
  'a PUBREC',
  'a PUBREL',
  'a PUBCOMP',
  'a SUBSCRIBE',
  'a SUBACK',
  'an UNSUBSCRIBE',
  'an UNSUBACK',
  'a PINGREQ',
  'a PINGRESP',
  'a DISCONNECT',
  'a packet of type 15',
] as const;

function nameOf(header: number): string {
  return NAMES[header >> 4] as string;
}
