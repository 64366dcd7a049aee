/** Makes network captures for tests: TCP segments of an MQTT connection as packets of a pcap or pcapng file. */
import mqttPacket, { type Packet } from 'mqtt-packet';

/** One TCP segment of a test's connection. */
export interface TestSegment {
  readonly from: 'client' | 'server';
  /** When it is captured, in seconds after the first packet's time. */
  readonly at: number;
  /** The offset of its first byte in what the side sends; −1 for the SYN. */
  readonly offset: number;
  readonly bytes?: Uint8Array;
  /** A sum of {@link FIN}, {@link SYN} and {@link RST}; 0 by default. ACK is set for `acknowledges`. */
  readonly flags?: number;
  /** How many bytes of the other side the segment acknowledges. */
  readonly acknowledges?: number;
  readonly clientPort?: number;
  readonly serverPort?: number;
}

/** Flags of a TCP header. */
export const FIN = 1;
export const SYN = 2;
export const RST = 4;
const ACK = 16;
/** The client's first sequence number: near the maximum, so that it wraps around soon. */
const CLIENT_START = 0xfffffff0;
const SERVER_START = 1000;

/** The bytes of an MQTT packet. */
export function mqtt(packet: Packet): Buffer {
  return mqttPacket.generate(packet);
}

/**
 * The segment in an IPv4 packet in an Ethernet frame. The numbers are offsets and values of these protocols' headers.
 */
export function frameOf(segment: TestSegment): Buffer {
  const { from, offset, bytes = Buffer.alloc(0), flags = 0, acknowledges, clientPort = 50_000 } = segment;
  const { serverPort = 1883 } = segment;
  const isClient = from === 'client';
  // TCP: ports, sequence number (that of the SYN is the start), acknowledgement, five words of header, flags.
  const tcp = Buffer.alloc(20);
  tcp.writeUInt16BE(isClient ? clientPort : serverPort, 0);
  tcp.writeUInt16BE(isClient ? serverPort : clientPort, 2);
  tcp.writeUInt32BE(((isClient ? CLIENT_START : SERVER_START) + 1 + offset) >>> 0, 4);
  if (acknowledges !== undefined)
    tcp.writeUInt32BE(((isClient ? SERVER_START : CLIENT_START) + 1 + acknowledges) >>> 0, 8);
  tcp[12] = 5 << 4;
  tcp[13] = flags | (acknowledges === undefined ? 0 : ACK);
  // IPv4 with five words of header: total length, protocol 6 (TCP), addresses.
  const ip = Buffer.alloc(20);
  ip[0] = 0x45;
  ip.writeUInt16BE(40 + bytes.length, 2);
  ip[9] = 6;
  ip.set(isClient ? [10, 0, 0, 1, 10, 0, 0, 2] : [10, 0, 0, 2, 10, 0, 0, 1], 12);
  // Ethernet: two addresses, left zero, and the type 0x0800 (IPv4).
  const ethernet = Buffer.alloc(14);
  ethernet.writeUInt16BE(0x0800, 12);
  return Buffer.concat([ethernet, ip, tcp, bytes]);
}

/** The time of the first packet: 2026-11-20 08:00 UTC. */
const START_SECONDS = 1_795_161_600;

/** A pcap file with microseconds. */
export function pcapOf(segments: readonly TestSegment[]): Buffer {
  // The magic number, versions and limits that readers ignore, and link type 1 (Ethernet).
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b2c3d4, 0);
  header.writeUInt32LE(1, 20);
  const records = segments.map((segment) => {
    const frame = frameOf(segment);
    // Seconds, microseconds, captured length, original length.
    const record = Buffer.alloc(16);
    record.writeUInt32LE(START_SECONDS + Math.floor(segment.at), 0);
    record.writeUInt32LE(Math.round((segment.at % 1) * 1e6), 4);
    record.writeUInt32LE(frame.length, 8);
    record.writeUInt32LE(frame.length, 12);
    return Buffer.concat([record, frame]);
  });
  return Buffer.concat([header, ...records]);
}

/** The packets of a little-endian pcap file in another format. */
export function convertCapture(pcap: Buffer, format: 'big-endian' | 'nanoseconds' | 'pcapng'): Buffer {
  const linkType = pcap.readUInt32LE(20);
  const isBig = format === 'big-endian';
  /** The values as numbers of 32 bits, in the format's byte order. */
  const u32 = (...values: number[]): Buffer => {
    const bytes = Buffer.alloc(4 * values.length);
    for (const [index, value] of values.entries())
      isBig ? bytes.writeUInt32BE(value, index * 4) : bytes.writeUInt32LE(value, index * 4);
    return bytes;
  };
  const magic = format === 'nanoseconds' ? 0xa1b23c4d : 0xa1b2c3d4;
  const blocks = format === 'pcapng' ? pcapngHeader(u32, linkType) : [u32(magic, 0, 0, 0, 65_535, linkType)];
  // A pcap file has a header of 24 bytes, and a header of 16 bytes before each packet.
  for (let at = 24; at < pcap.length; ) {
    const [seconds, micros, length, original] = [0, 4, 8, 12].map((field) => pcap.readUInt32LE(at + field)) as [
      number,
      number,
      number,
      number,
    ];
    const bytes = pcap.subarray(at + 16, at + 16 + length);
    if (format === 'pcapng') {
      const units = BigInt(seconds) * 1_000_000_000n + BigInt(micros) * 1000n;
      const padding = Buffer.alloc((4 - (length % 4)) % 4);
      const size = 32 + length + padding.length;
      const time = [Number(units >> 32n), Number(units & 0xffffffffn)];
      // Block type 6 is a packet, of interface 0. A block has its size at both ends.
      blocks.push(u32(6, size, 0, ...time, length, original), bytes, padding, u32(size));
    } else blocks.push(u32(seconds, format === 'nanoseconds' ? micros * 1000 : micros, length, original), bytes);
    at += 16 + length;
  }
  return Buffer.concat(blocks);
}

/** The first blocks of a pcapng file: a section, an interface with nanoseconds, and a block that readers must skip. */
function pcapngHeader(u32: (...values: number[]) => Buffer, linkType: number): Buffer[] {
  const section = u32(0x0a0d0d0a, 28, 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff, 28);
  // Option 9, one byte long: times are in units of 10⁻⁹ s. Padded to a multiple of four bytes.
  const resolution = Buffer.from([9, 0, 1, 0, 9, 0, 0, 0]);
  const end = u32(0);
  const size = 16 + resolution.length + end.length + 4;
  // Block type 1 is an interface, type 5 statistics.
  return [section, u32(1, size, linkType, 65_535), resolution, end, u32(size), u32(5, 16, 0, 16)];
}
