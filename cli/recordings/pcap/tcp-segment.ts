/** Finds the TCP segment in a captured packet: link layer, IPv4 or IPv6, TCP. Never throws. */
import type { CapturedPacket } from './captured-packet.js';

/** One TCP segment. */
export interface TcpSegment {
  /** Address and port as a text, for comparison. */
  readonly from: string;
  readonly to: string;
  readonly fromPort: number;
  readonly toPort: number;
  readonly sequence: number;
  readonly acknowledged: number;
  readonly isSyn: boolean;
  readonly isAck: boolean;
  readonly isFin: boolean;
  readonly isReset: boolean;
  /** The captured part of the payload, valid until the visitor returns. */
  readonly payload: Buffer;
  /** The length of the complete payload; greater than that of `payload` if the capture cut the packet. */
  readonly payloadBytes: number;
}

/**
 * Link types of tcpdump.org that carry IP. `null` and `loop` are loopback interfaces, `raw` is IP without a link layer,
 * and the cooked ones are Linux's for all interfaces (`tcpdump -i any`).
 */
const LINK_TYPES = {
  null: 0,
  ethernet: 1,
  raw: [12, 14, 101, 228, 229],
  loop: 108,
  cooked: 113,
  cooked2: 276,
} as const;
const ETHERTYPE_IPV4 = 0x0800;
const ETHERTYPE_IPV6 = 0x86dd;
const ETHERTYPES_VLAN = new Set([0x8100, 0x88a8, 0x9100]);
/** Headers of link layers: their lengths, and where the Ethertype is in them. */
const ETHERNET_HEADER_BYTES = 14;
const ETHERNET_ETHERTYPE_OFFSET = 12;
const LOOPBACK_HEADER_BYTES = 4;
const COOKED_HEADER_BYTES = 16;
const COOKED_ETHERTYPE_OFFSET = 14;
const COOKED2_HEADER_BYTES = 20;
const COOKED2_ETHERTYPE_OFFSET = 0;
const VLAN_BYTES = 4;
const MAX_VLANS = 4;

/** The minimum lengths of headers, without options. Offsets in them are those of RFC 791, RFC 8200 and RFC 9293. */
const MIN_IPV4_HEADER_BYTES = 20;
const MIN_TCP_HEADER_BYTES = 20;
const PROTOCOL_TCP = 6;
const NOT_IP = 'a packet that is not IP';
const NOT_TCP = 'a packet that is not TCP';
const TOO_SHORT = 'a packet whose headers are not complete';
const FRAGMENT = 'a fragment of an IP packet';

/** The segment, or one of few fixed sentences that says why the packet has none. */
export function segmentOf(packet: CapturedPacket): TcpSegment | string {
  const ip = ipPacketOf(packet);
  if (typeof ip === 'string') return ip;
  if (ip.length < MIN_IPV4_HEADER_BYTES) return TOO_SHORT;
  const version = (ip[0] as number) >> 4;
  if (version === 4) return segmentInIpv4(ip);
  return version === 6 ? segmentInIpv6(ip) : NOT_IP;
}

/** The IP packet inside a captured packet. */
function ipPacketOf({ linkType, bytes }: CapturedPacket): Buffer | string {
  if ((LINK_TYPES.raw as readonly number[]).includes(linkType)) return bytes;
  if (linkType === LINK_TYPES.null || linkType === LINK_TYPES.loop) return bytes.subarray(LOOPBACK_HEADER_BYTES);
  if (linkType === LINK_TYPES.cooked)
    return bytes.length < COOKED_HEADER_BYTES ? TOO_SHORT : ipAfterEthertype(bytes, COOKED_ETHERTYPE_OFFSET);
  if (linkType === LINK_TYPES.cooked2) {
    if (bytes.length < COOKED2_HEADER_BYTES) return TOO_SHORT;
    return isIp(bytes.readUInt16BE(COOKED2_ETHERTYPE_OFFSET)) ? bytes.subarray(COOKED2_HEADER_BYTES) : NOT_IP;
  }
  // Without a link type: a simple packet of pcapng, which has no time either.
  if (linkType !== LINK_TYPES.ethernet)
    return linkType === -1 ? 'a packet without a time' : `a packet of link type ${linkType}, which is not supported`;
  return bytes.length < ETHERNET_HEADER_BYTES ? TOO_SHORT : ipAfterEthertype(bytes, ETHERNET_ETHERTYPE_OFFSET);
}

/** The IP packet after the Ethertype at this offset and any VLAN tags. */
function ipAfterEthertype(bytes: Buffer, offset: number): Buffer | string {
  let typeOffset = offset;
  for (let tags = 0; tags < MAX_VLANS && ETHERTYPES_VLAN.has(bytes.readUInt16BE(typeOffset)); tags++) {
    typeOffset += VLAN_BYTES;
    if (bytes.length < typeOffset + 2) return TOO_SHORT;
  }
  return isIp(bytes.readUInt16BE(typeOffset)) ? bytes.subarray(typeOffset + 2) : NOT_IP;
}

function isIp(ethertype: number): boolean {
  return ethertype === ETHERTYPE_IPV4 || ethertype === ETHERTYPE_IPV6;
}

function segmentInIpv4(ip: Buffer): TcpSegment | string {
  const headerBytes = ((ip[0] as number) & 0xf) * 4;
  if (headerBytes < MIN_IPV4_HEADER_BYTES || ip.length < headerBytes) return TOO_SHORT;
  if (ip[9] !== PROTOCOL_TCP) return NOT_TCP;
  // The flag "more fragments" or a fragment offset is set.
  if ((ip.readUInt16BE(6) & 0x3fff) !== 0) return FRAGMENT;
  // The length is 0 if the network card is to split a large packet (TCP segmentation offload).
  const length = ip.readUInt16BE(2) || ip.length;
  return parseTcp(ip.subarray(headerBytes), length - headerBytes, [ip.subarray(12, 16), ip.subarray(16, 20)]);
}

const IPV6_HEADER_BYTES = 40;
const IPV6_FRAGMENT = 44;
/** Hop-by-hop options, routing, destination options: a next header, and a length in units of 8 bytes. */
const IPV6_EXTENSIONS = new Set([0, 43, 60]);
const MAX_EXTENSIONS = 8;

function segmentInIpv6(ip: Buffer): TcpSegment | string {
  if (ip.length < IPV6_HEADER_BYTES) return TOO_SHORT;
  const length = ip.readUInt16BE(4) || ip.length - IPV6_HEADER_BYTES;
  let next = ip[6] as number;
  let offset = IPV6_HEADER_BYTES;
  for (let count = 0; count < MAX_EXTENSIONS && IPV6_EXTENSIONS.has(next); count++) {
    if (ip.length < offset + 2) return TOO_SHORT;
    next = ip[offset] as number;
    offset += ((ip[offset + 1] as number) + 1) * 8;
  }
  if (next === IPV6_FRAGMENT) return FRAGMENT;
  if (next !== PROTOCOL_TCP) return NOT_TCP;
  return parseTcp(ip.subarray(offset), length - (offset - IPV6_HEADER_BYTES), [
    ip.subarray(8, 24),
    ip.subarray(24, 40),
  ]);
}

/**
 * Parses a TCP segment.
 *
 * @param length the segment's length by the IP header; `tcp` is longer if the frame was padded, shorter if it was cut
 */
function parseTcp(tcp: Buffer, length: number, [source, target]: readonly [Buffer, Buffer]): TcpSegment | string {
  if (tcp.length < MIN_TCP_HEADER_BYTES) return TOO_SHORT;
  const headerBytes = ((tcp[12] as number) >> 4) * 4;
  if (headerBytes < MIN_TCP_HEADER_BYTES || tcp.length < headerBytes || length < headerBytes) return TOO_SHORT;
  const flags = tcp[13] as number;
  const [fromPort, toPort] = [tcp.readUInt16BE(0), tcp.readUInt16BE(2)];
  return {
    from: `${source.toString('hex')}:${fromPort}`,
    to: `${target.toString('hex')}:${toPort}`,
    fromPort,
    toPort,
    sequence: tcp.readUInt32BE(4),
    acknowledged: tcp.readUInt32BE(8),
    isFin: (flags & 1) !== 0,
    isSyn: (flags & 2) !== 0,
    isReset: (flags & 4) !== 0,
    isAck: (flags & 16) !== 0,
    payload: tcp.subarray(headerBytes, length),
    payloadBytes: length - headerBytes,
  };
}
