/**
 * What a lock's life weighs on the line: the bytes of each MQTT 3.1.1 frame that a lock and its gateway exchange, as a
 * network would bill them (protocol.md §1). TCP/IP headers are not in it, as they are not in the gateway's own account.
 *
 * The sizes are computed from the standard, not measured from our own programs, so that they can prove these wrong.
 */
import { encodeDownlink, encodeUplink } from '../../proto/wire/codec.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';

/** Bytes up are from the lock, bytes down are to it. */
export interface WireBytes {
  readonly up: number;
  readonly down: number;
}

export interface WireOptions {
  /** Of the password, bytes; as the gateway makes them where it is left out. */
  readonly secretBytes?: number;
  /** How the connection is protected; plain TCP where it is left out. */
  readonly tls?: TlsBytes;
}

/** What TLS adds. */
export interface TlsBytes {
  /** Of each connection's handshake, tickets included. */
  readonly handshake: WireBytes;
}

/** A secret is a prefix of 4 letters and 24 random bytes in base64url. */
const SECRET_BYTES = 36;
/** The MAC in its wire form, as client id and as user name. */
const MAC_BYTES = 12;
/** MQTT 3.1.1, 3.1.2: the protocol's name, its level, flags, keepalive. */
const CONNECT_HEADER_BYTES = 10;
/** Packet type and remaining length of a short packet. */
const FIXED_BYTES = 2;
const PACKET_ID_BYTES = 2;
/** A text's length stands before it. */
const LENGTH_BYTES = 2;
const CONNACK_BYTES = 4;
const SUBACK_BYTES = 5;
const PUBACK_BYTES = 4;
const PING_BYTES = 2;
const DISCONNECT_BYTES = 2;
/** TLS 1.3 with an AEAD of 16 bytes (RFC 8446, 5.2): a record's header, the type within, the tag. */
const RECORD_BYTES = 22;
/** A close_notify alert is two bytes in a record of its own. */
const CLOSE_NOTIFY_BYTES = RECORD_BYTES + 2;

/**
 * A full TLS 1.3 handshake of Node with the gateway, which shows one P-256 certificate that it has signed itself;
 * test/cli/sim-plan.test.ts holds it to what goes over a socket. A chain of certificates adds its bytes to those down.
 */
export const TLS_13: TlsBytes = Object.freeze({ handshake: Object.freeze({ up: 429, down: 1261 }) });

/** The sizes of all that passes. */
export class WireSize {
  /** From the first byte until commands can come: CONNECT, CONNACK, SUBSCRIBE, SUBACK. */
  readonly connect: WireBytes;
  /** PINGREQ and PINGRESP. */
  readonly keepalive: WireBytes;
  /** A connection that ends in good order. */
  readonly close: WireBytes;
  readonly #record: number;

  constructor({ secretBytes = SECRET_BYTES, tls }: WireOptions = {}) {
    const record = tls === undefined ? 0 : RECORD_BYTES;
    const handshake = tls?.handshake ?? { up: 0, down: 0 };
    const alert = tls === undefined ? 0 : CLOSE_NOTIFY_BYTES;
    const connect = packetBytes(CONNECT_HEADER_BYTES + 3 * LENGTH_BYTES + 2 * MAC_BYTES + secretBytes);
    const subscribe = packetBytes(PACKET_ID_BYTES + LENGTH_BYTES + 'down'.length + 1);
    this.#record = record;
    this.connect = {
      up: handshake.up + connect + subscribe + 2 * record,
      down: handshake.down + CONNACK_BYTES + SUBACK_BYTES + 2 * record,
    };
    this.keepalive = { up: PING_BYTES + record, down: PING_BYTES + record };
    this.close = { up: DISCONNECT_BYTES + record + alert, down: alert };
  }

  /** A PUBLISH of an uplink, and its PUBACK. */
  uplink(uplink: Uplink): WireBytes {
    const publish = publishBytes('up', encodeUplink(uplink).length);
    return { up: publish + this.#record, down: PUBACK_BYTES + this.#record };
  }

  /** A PUBLISH of a command, and its PUBACK. */
  downlink(downlink: Downlink): WireBytes {
    const publish = publishBytes('down', encodeDownlink(downlink).length);
    return { up: PUBACK_BYTES + this.#record, down: publish + this.#record };
  }
}

/** At QoS 1, which has a packet id. */
function publishBytes(topic: string, payload: number): number {
  return packetBytes(LENGTH_BYTES + topic.length + PACKET_ID_BYTES + payload);
}

/** A packet with so many bytes behind its fixed header, whose length takes a byte for each 7 bits (MQTT, 2.2.3). */
function packetBytes(remaining: number): number {
  let bytes = FIXED_BYTES;
  for (let left = remaining; left > 127; left >>>= 7) bytes += 1;
  return bytes + remaining;
}
