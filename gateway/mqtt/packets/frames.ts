/**
 * Finds the boundaries of MQTT packets (MQTT 3.1.1, 2.2) without buffering. The fixed header (type, flags, length)
 * shows whether a packet is too long before its body has arrived. Does no I/O.
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
const QOS_1_PUBLISH = (PUBLISH << 4) | 0b0010;
const QOS_1_PUBLISH_DUP = (PUBLISH << 4) | 0b1010;

/** The packet types that may follow a CONNECT. PUBREC, PUBREL and PUBCOMP belong to QoS 2, which is refused. */
const ALLOWED_AFTER_CONNECT = new Set([PUBLISH, PUBACK, SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT]);

/** A packet's length has 1 to 4 bytes of 7 bits each (MQTT 3.1.1, 2.2.3). */
const MAX_LENGTH_BYTES = 4;

/** The first two bytes of a TLS client: a record of the handshake, of version 3.x (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 0x16;
const TLS_MAJOR_VERSION = 3;

/** What the first bytes of a connection contain. `size` is the packet's size in bytes; undefined until it is known. */
export type FirstPacket =
  | { readonly state: 'incomplete'; readonly size: number | undefined }
  | { readonly state: 'complete'; readonly size: number }
  | { readonly state: 'fault'; readonly fault: RefusalCause };

/** Inspects a connection's first bytes. The first packet must be a CONNECT that announces at most `maxBytes`. */
export function firstPacket(bytes: Uint8Array, maxBytes: number): FirstPacket {
  const header = bytes[0];
  if (header === undefined) return { state: 'incomplete', size: undefined };
  if (header === TLS_HANDSHAKE && (bytes[1] === undefined || bytes[1] === TLS_MAJOR_VERSION))
    return bytes[1] === undefined
      ? { state: 'incomplete', size: undefined }
      : faulty({
          reason: 'tls',
          why: 'the client uses TLS, this port does not: connect with mqtt://, or to the TLS port',
        });
  if (header >> 4 !== CONNECT)
    return faulty({ reason: 'not-connect', why: `the first packet is ${nameOf(header)}, not a CONNECT` });
  if (header !== CONNECT << 4)
    return faulty({ reason: 'malformed', why: 'the first packet has flags that no CONNECT has' });
  let length = 0;
  for (let index = 1; index <= MAX_LENGTH_BYTES; index++) {
    const byte = bytes[index];
    if (byte === undefined) return { state: 'incomplete', size: undefined };
    length += (byte & 0x7f) << (7 * (index - 1));
    if (byte >= 0x80) continue;
    if (length > maxBytes) return faulty(tooLong(length, maxBytes));
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
  why: `a packet's length has more than ${MAX_LENGTH_BYTES} bytes`,
};

function tooLong(length: number, maxBytes: number): RefusalCause {
  const [announced, allowed] = [length.toLocaleString('en'), maxBytes.toLocaleString('en')];
  return { reason: 'packet', why: `a packet announces ${announced} bytes: at most ${allowed} are allowed` };
}

/** Follows the packets of a connection through chunks of any size. */
export class FrameCounter {
  /** The number of complete packets. */
  complete = 0;
  /** Offset of the first packet that started in the last chunk; the chunk's length if none did. */
  firstPacketAt = 0;
  /** How many bytes of the current packet's body are still missing. */
  #bodyBytesLeft = 0;
  /** How many bytes of a fixed header have arrived; 0 between packets and within a body. */
  #headerBytes = 0;
  #header = 0;
  #length = 0;
  readonly #fields = new PacketFields();

  /**
   * Takes the next chunk. Returns its first fault, if any: a packet that announces more than `maxBytes`, is not allowed
   * after a CONNECT, or is malformed (packet-fields.ts).
   */
  pass(chunk: Uint8Array, maxBytes: number): RefusalCause | undefined {
    this.firstPacketAt = chunk.length;
    for (let at = 0; at < chunk.length; ) {
      if (this.#bodyBytesLeft > 0) {
        const taken = Math.min(this.#bodyBytesLeft, chunk.length - at);
        const fault = this.#fields.pass(chunk, at, at + taken);
        if (fault !== undefined) return fault;
        at += taken;
        this.#bodyBytesLeft -= taken;
        if (this.#bodyBytesLeft === 0) this.complete += 1;
        continue;
      }
      if (this.#headerBytes === 0 && at < this.firstPacketAt) this.firstPacketAt = at;
      const fault = this.#passHeaderByte(chunk[at] as number, maxBytes);
      if (fault !== undefined) return fault;
      at += 1;
    }
    return undefined;
  }

  #passHeaderByte(byte: number, maxBytes: number): RefusalCause | undefined {
    if (this.#headerBytes === 0) {
      if (!ALLOWED_AFTER_CONNECT.has(byte >> 4))
        return { reason: 'packet', why: `${nameOf(byte)} is not allowed after a CONNECT` };
      this.#headerBytes = 1;
      this.#header = byte;
      this.#length = 0;
      return flagsFault(byte);
    }
    this.#length += (byte & 0x7f) << (7 * (this.#headerBytes - 1));
    if (byte >= 0x80) {
      this.#headerBytes += 1;
      return this.#headerBytes > MAX_LENGTH_BYTES ? LENGTH_FAULT : undefined;
    }
    if (this.#length > maxBytes) return tooLong(this.#length, maxBytes);
    this.#headerBytes = 0;
    this.#bodyBytesLeft = this.#length;
    if (this.#length === 0) this.complete += 1;
    return this.#fields.begin(this.#header, this.#length);
  }
}

/** Offset of a packet's body. `packet` must start with a complete fixed header. */
export function bodyOffset(packet: Uint8Array): number {
  let at = 1;
  while ((packet[at] as number) >= 0x80) at += 1;
  return at + 1;
}

/** The end of the packet that starts at `at`; 0 if it is incomplete. A {@link FrameCounter} must have accepted it. */
export function packetEnd(chunk: Uint8Array, at: number): number {
  let length = 0;
  for (let index = at + 1, shift = 0; index < chunk.length; index++, shift += 7) {
    const byte = chunk[index] as number;
    length += (byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    const end = index + 1 + length;
    return end <= chunk.length ? end : 0;
  }
  return 0;
}

/**
 * Offset of the payload of an ordinary uplink: a PUBLISH to `topic` at QoS 1, not retained. 0 for any other packet. The
 * packet extends from `at` to `end`; its id is in the two bytes before the payload. A {@link FrameCounter} must have
 * accepted the packet, so its id is not 0.
 */
export function uplinkPayloadOffset(chunk: Uint8Array, at: number, end: number, topic: Uint8Array): number {
  const header = chunk[at];
  if (header !== QOS_1_PUBLISH && header !== QOS_1_PUBLISH_DUP) return 0;
  let topicAt = at + 1;
  while ((chunk[topicAt] as number) >= 0x80) topicAt += 1;
  // Past the last byte of the packet's length, and the two bytes of the topic's length.
  topicAt += 3;
  const idAt = topicAt + topic.length;
  if (idAt + 2 > end || chunk[topicAt - 2] !== topic.length >> 8 || chunk[topicAt - 1] !== (topic.length & 0xff))
    return 0;
  for (let index = 0; index < topic.length; index++) if (chunk[topicAt + index] !== topic[index]) return 0;
  return idAt + 2;
}

const PACKET_NAMES = [
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
  return PACKET_NAMES[header >> 4] as string;
}
