/**
 * Reads the header of the PROXY protocol, versions 1 and 2 (haproxy.org, "The PROXY protocol"): a TCP balancer sends it
 * first on each connection, and it names the client's address. Pure.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { plainAddress } from './address-group.js';

/** A longer header is refused. The protocol promises senders that this many bytes are taken. */
export const MAX_PROXY_HEADER_BYTES = 536;

/** What the first bytes of a connection are. */
export type ProxyHeader =
  /** More bytes must come first. */
  | { readonly is: 'incomplete' }
  /** No header, or none that this version knows; `why` is a sentence for operators. */
  | { readonly is: 'wrong'; readonly why: string }
  /**
   * A header of `bytes` bytes. `address` is undefined for a connection of the balancer's own, such as a health check.
   */
  | { readonly is: 'complete'; readonly bytes: number; readonly address: string | undefined };

const INCOMPLETE: ProxyHeader = { is: 'incomplete' };
const wrong = (why: string): ProxyHeader => ({ is: 'wrong', why });

const V1_START = Buffer.from('PROXY ', 'latin1');
/** The longest line of version 1, with its end. */
const V1_MAX_BYTES = 107;
const V1_LINE = /^PROXY (?:UNKNOWN(?: [^\r\n]*)?|TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5}))$/;

const V2_START = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** The signature, a byte of version and command, one of family and protocol, and the length of what follows. */
const V2_FIXED_BYTES = 16;
const [V2_LOCAL, V2_PROXY] = [0x20, 0x21];
/** The bytes of the two addresses and ports, by family and protocol: TCP over IPv4 or IPv6. */
const V2_ADDRESS_BYTES = new Map([
  [0x11, 12],
  [0x21, 36],
]);

/** Reads the header at the start of `bytes`, which may be a part of it, or have more behind it. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (startsLike(bytes, V2_START)) return readV2(bytes);
  if (startsLike(bytes, V1_START)) return readV1(bytes);
  return wrong('the balancer sent no PROXY protocol header');
}

/** Whether the bytes begin with `start`, as far as they go. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, length, 0, length) === 0;
}

function readV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, V1_MAX_BYTES).indexOf('\r\n');
  if (end === -1) return bytes.length < V1_MAX_BYTES ? INCOMPLETE : wrong('the line of the PROXY header has no end');
  const found = V1_LINE.exec(bytes.toString('latin1', 0, end));
  if (found === null) return wrong('the line of the PROXY header is malformed');
  const [, family, address = ''] = found;
  if (family === undefined) return { is: 'complete', bytes: end + 2, address: undefined };
  const isRight = family === '4' ? isIPv4(address) : isIPv6(address);
  if (!isRight) return wrong(`the PROXY header has an address that does not belong to TCP${family}`);
  return { is: 'complete', bytes: end + 2, address: plainAddress(address) };
}

function readV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < V2_FIXED_BYTES) return INCOMPLETE;
  const command = bytes.readUInt8(12);
  const family = bytes.readUInt8(13);
  const length = bytes.readUInt16BE(14);
  const total = V2_FIXED_BYTES + length;
  if (command !== V2_LOCAL && command !== V2_PROXY) return wrong('the PROXY header has another version or command');
  if (total > MAX_PROXY_HEADER_BYTES)
    return wrong(`the PROXY header has ${total} bytes; up to ${MAX_PROXY_HEADER_BYTES} are read`);
  if (bytes.length < total) return INCOMPLETE;
  const addressBytes = V2_ADDRESS_BYTES.get(family);
  // With any other family, such as that of local sockets, the client's address is unknown.
  if (command === V2_LOCAL || addressBytes === undefined) return { is: 'complete', bytes: total, address: undefined };
  if (length < addressBytes) return wrong('the PROXY header is too short for its addresses');
  const size = family === 0x11 ? 4 : 16;
  const address = ipaddr.fromByteArray([...bytes.subarray(V2_FIXED_BYTES, V2_FIXED_BYTES + size)]).toString();
  return { is: 'complete', bytes: total, address: isIP(address) === 0 ? undefined : plainAddress(address) };
}
