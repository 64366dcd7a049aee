/**
 * Splits the bytes of one direction of an MQTT 3.1.1 connection into packets and parses them. After missing bytes (a
 * gap) it is unknown where a packet starts, so bytes are skipped until a TCP segment consists of complete packets.
 * Never throws.
 */
import mqttPacket, { type Packet } from 'mqtt-packet';

/** Receives the packets. */
export interface PacketHandler {
  packet(packet: Packet): void;
  /** Called for bytes or a packet that can't be read; `reason` is one of few fixed sentences. */
  unread(reason: string, detail?: string): void;
}

/**
 * The maximum length of a packet. An uplink (a message of a lock) has at most 1,024 bytes; packets of other programs
 * may be longer.
 */
const MAX_PACKET_BYTES = 256 * 1024;
/** Bytes of the member "remaining length" (MQTT 3.1.1 §2.2.3). */
const MAX_LENGTH_BYTES = 4;
/** The types of MQTT 3.1.1 are 1 (CONNECT) to 14 (DISCONNECT). */
const LAST_PACKET_TYPE = 14;

const NOT_MQTT = 'a connection that is not MQTT 3.1.1';
const LOST_BYTES = 'bytes that the capture does not have, and what can’t be read without them';
const UNREADABLE = 'an MQTT packet that can’t be read';

/** One direction of a connection. */
export class MqttPackets {
  readonly #handler: PacketHandler;
  #pending: Buffer = Buffer.alloc(0);
  /** `aligned`: the next byte starts a packet or continues {@link #pending}; `lost`: after a gap; `other`: not MQTT. */
  #state: 'aligned' | 'lost' | 'other' = 'aligned';

  constructor(handler: PacketHandler) {
    this.#handler = handler;
  }

  /** Adds the bytes of a segment. */
  push(bytes: Buffer, isAfterGap: boolean): void {
    if (isAfterGap && this.#state === 'aligned') {
      this.#state = 'lost';
      this.#pending = Buffer.alloc(0);
    }
    if (this.#state === 'lost') {
      if (!isCompletePackets(bytes)) {
        this.#handler.unread(LOST_BYTES);
        return;
      }
      if (isAfterGap) this.#handler.unread(LOST_BYTES);
      this.#state = 'aligned';
    }
    if (this.#state === 'other') return;
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#readPackets();
  }

  #readPackets(): void {
    let offset = 0;
    for (;;) {
      const length = packetBytes(this.#pending, offset);
      if (length === 'invalid') {
        this.#state = 'other';
        this.#pending = Buffer.alloc(0);
        this.#handler.unread(NOT_MQTT);
        return;
      }
      if (length === 'incomplete' || offset + length > this.#pending.length) break;
      this.#parse(this.#pending.subarray(offset, offset + length));
      offset += length;
    }
    this.#pending = Buffer.from(this.#pending.subarray(offset));
  }

  #parse(bytes: Buffer): void {
    // Protocol level 4 is MQTT 3.1.1.
    const parser = mqttPacket.parser({ protocolVersion: 4 });
    let parsed: Packet | undefined;
    let error: unknown;
    parser.on('packet', (packet) => {
      parsed = packet;
    });
    parser.on('error', (each) => {
      error = each;
    });
    try {
      parser.parse(Buffer.from(bytes));
    } catch (thrown) {
      // The library reads beyond the end of some short packets.
      error = thrown;
    }
    if (parsed !== undefined && error === undefined) this.#handler.packet(parsed);
    else this.#handler.unread(UNREADABLE, error instanceof Error ? error.message : undefined);
  }
}

/**
 * The length of the packet that starts at this offset. The packet's first byte has the type in its upper 4 bits. The
 * following bytes have the number of bytes after them, 7 bits each from the lowest on; the uppermost bit of each says
 * that another one follows.
 */
function packetBytes(bytes: Buffer, start: number): number | 'incomplete' | 'invalid' {
  if (start >= bytes.length) return 'incomplete';
  const type = (bytes[start] as number) >> 4;
  if (type === 0 || type > LAST_PACKET_TYPE) return 'invalid';
  let remaining = 0;
  for (let index = 0; index < MAX_LENGTH_BYTES; index++) {
    const byte = bytes[start + 1 + index];
    if (byte === undefined) return 'incomplete';
    remaining += (byte & 0x7f) * 128 ** index;
    if (byte >= 0x80) continue;
    const length = 2 + index + remaining;
    return length > MAX_PACKET_BYTES ? 'invalid' : length;
  }
  return 'invalid';
}

/** Whether the bytes are one or more complete packets, and nothing else. */
function isCompletePackets(bytes: Buffer): boolean {
  let offset = 0;
  while (offset < bytes.length) {
    const length = packetBytes(bytes, offset);
    if (typeof length !== 'number') return false;
    offset += length;
  }
  return offset === bytes.length;
}
