/**
 * The bytes of each MQTT 3.1.1 packet between a lock and its gateway (protocol.md §1), with or without TLS, to estimate
 * the traffic of a lock. TCP/IP headers are excluded, as in the gateway's meter.
 *
 * The sizes are computed from the standards, not measured on our programs, so that they can prove the programs wrong.
 */
import { encodeDownlink, encodeUplink } from '../../proto/wire/codec.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';

/** Bytes from the lock (up) and to the lock (down). */
export interface WireBytes {
  readonly up: number;
  readonly down: number;
}

/** What the sizes depend on. */
export interface WireOptions {
  /** Length of the password, bytes. By default the length of the secrets that the gateway generates. */
  readonly secretBytes?: number;
  /** The cost of TLS; plain TCP by default. */
  readonly tls?: TlsBytes;
}

/** The bytes that TLS adds to a connection, besides those of each record. */
export interface TlsBytes {
  /** The handshake, session tickets included. */
  readonly handshake: WireBytes;
}

/** A secret is a prefix of 4 letters and 24 random bytes in base64url. */
const SECRET_BYTES = 36;
/** The MAC in its wire form, as client id and as user name. */
const MAC_BYTES = 12;
/** The variable header of CONNECT (MQTT 3.1.1, 3.1.2): protocol name, protocol level, flags, keepalive. */
const CONNECT_HEADER_BYTES = 10;
/** Packet type and remaining length of a short packet. */
const FIXED_HEADER_BYTES = 2;
const PACKET_ID_BYTES = 2;
/** The quality of service that SUBSCRIBE asks for. */
const REQUESTED_QOS_BYTES = 1;
/** The length field before each string. */
const LENGTH_PREFIX_BYTES = 2;
const CONNACK_BYTES = 4;
const SUBACK_BYTES = 5;
const PUBACK_BYTES = 4;
const PING_BYTES = 2;
const DISCONNECT_BYTES = 2;
/** What each TLS 1.3 record adds (RFC 8446, 5.2): its header, the inner content type, an AEAD tag of 16 bytes. */
const TLS_RECORD_BYTES = 22;
/** A close_notify alert: two bytes in a separate record. */
const CLOSE_NOTIFY_BYTES = TLS_RECORD_BYTES + 2;

/**
 * A full TLS 1.3 handshake between a Node client and the gateway, with one self-signed P-256 certificate.
 * test/cli/sim-plan.test.ts compares these sizes with a real socket. A certificate chain adds its bytes to `down`.
 */
export const TLS_13: TlsBytes = Object.freeze({ handshake: Object.freeze({ up: 429, down: 1261 }) });

/** The sizes of everything that a lock and its gateway exchange. */
export class WireSize {
  /** From the first byte until commands can arrive: CONNECT, CONNACK, SUBSCRIBE, SUBACK. */
  readonly connect: WireBytes;
  /** PINGREQ and PINGRESP. */
  readonly keepalive: WireBytes;
  /** DISCONNECT, and the TLS alerts. */
  readonly close: WireBytes;
  readonly #recordBytes: number;

  constructor({ secretBytes = SECRET_BYTES, tls }: WireOptions = {}) {
    const record = tls === undefined ? 0 : TLS_RECORD_BYTES;
    const handshake = tls?.handshake ?? { up: 0, down: 0 };
    const alert = tls === undefined ? 0 : CLOSE_NOTIFY_BYTES;
    const connect = packetBytes(CONNECT_HEADER_BYTES + 3 * LENGTH_PREFIX_BYTES + 2 * MAC_BYTES + secretBytes);
    const subscribe = packetBytes(PACKET_ID_BYTES + LENGTH_PREFIX_BYTES + 'down'.length + REQUESTED_QOS_BYTES);
    this.#recordBytes = record;
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
    return { up: publish + this.#recordBytes, down: PUBACK_BYTES + this.#recordBytes };
  }

  /** A PUBLISH of a command, and its PUBACK. */
  downlink(downlink: Downlink): WireBytes {
    const publish = publishBytes('down', encodeDownlink(downlink).length);
    return { up: PUBACK_BYTES + this.#recordBytes, down: publish + this.#recordBytes };
  }
}

/** The bytes of a PUBLISH at QoS 1, which has a packet id. */
function publishBytes(topic: string, payloadBytes: number): number {
  return packetBytes(LENGTH_PREFIX_BYTES + topic.length + PACKET_ID_BYTES + payloadBytes);
}

/** The bytes of a packet. The length field in its fixed header takes a byte per 7 bits (MQTT 3.1.1, 2.2.3). */
function packetBytes(bytesAfterHeader: number): number {
  let bytes = FIXED_HEADER_BYTES;
  for (let remaining = bytesAfterHeader; remaining > 127; remaining >>>= 7) bytes += 1;
  return bytes + bytesAfterHeader;
}
