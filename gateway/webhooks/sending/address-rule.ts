/**
 * Which addresses a webhook may be sent to. A merchant's URL is an operator's setting, but its name may come to resolve
 * to anything, so the rule is asked for the address that is about to be connected to, at every connection.
 *
 * Public unicast alone is allowed, unless the operator allows a range. What embeds an IPv4 address (mapped, compatible,
 * NAT64, 6to4) is judged by the address inside: it is where the packet would end.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { LockgateError } from '../../../proto/errors.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** An address range: base and prefix length. */
export type AddressRange = [Address, number];

/** IPv4 addresses in IPv6 spelling have so many bits before them (RFC 4291 §2.5.5.2). */
const MAPPED_BITS = 96;

/**
 * Reads `127.0.0.0/8`, `::1/128` or a single address. `::ffff:10.0.0.0/104` is 10.0.0.0/8, as which its addresses are
 * looked up.
 *
 * @throws LockgateError `input-range`
 */
export function parseRange(text: string): AddressRange {
  try {
    const [base = '', bits] = text.split('/');
    // ipaddr.js alone reads 10 as an address too, 0.0.0.10, and with it 10/8.
    if (isIP(base) === 0) throw new Error('no address');
    const address = ipaddr.parse(base);
    const range: AddressRange =
      bits === undefined ? [address, address.kind() === 'ipv4' ? 32 : 128] : ipaddr.parseCIDR(text);
    const isMapped = address.kind() === 'ipv6' && (address as ipaddr.IPv6).isIPv4MappedAddress();
    if (!isMapped || range[1] < MAPPED_BITS) return range;
    return [(address as ipaddr.IPv6).toIPv4Address(), range[1] - MAPPED_BITS];
  } catch {
    throw new LockgateError(
      'input-range',
      `${JSON.stringify(text)} is no address range: expected one such as 127.0.0.0/8 or fd00::/8`,
    );
  }
}

/** Whether a webhook may be sent to this IP address, given as text. What is no address is not allowed. */
export function isAllowedAddress(text: string, allowed: readonly AddressRange[]): boolean {
  // ipaddr.js alone reads 1.2.3 as an address too; a socket is given one that is complete.
  if (isIP(text) === 0) return false;
  const address = embeddedIpv4(ipaddr.parse(text));
  if (allowed.some(([base, bits]) => base.kind() === address.kind() && address.match(base as never, bits))) return true;
  return address.range() === 'unicast' && !isUnroutable(address);
}

const IPV4_COMPATIBLE = ipaddr.parseCIDR('::/96');
/** The well-known prefix. In the one for local use (64:ff9b:1::/48) nobody can know where the IPv4 address stands. */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');
const SIX_TO_FOUR = ipaddr.parseCIDR('2002::/16');
const LOOPBACK6 = ipaddr.parse('::1');

/** The IPv4 address that an IPv6 one carries, or the address itself. */
function embeddedIpv4(address: Address): Address {
  if (address.kind() === 'ipv4') return address;
  const ipv6 = address as ipaddr.IPv6;
  if (ipv6.isIPv4MappedAddress()) return ipv6.toIPv4Address();
  const bytes = ipv6.toByteArray();
  const isTail = ipv6.match(NAT64 as [ipaddr.IPv6, number]);
  // ipaddr.js calls ::127.0.0.1 unicast; ::1 and :: are not IPv4 addresses in disguise.
  const isCompatible = ipv6.match(IPV4_COMPATIBLE as [ipaddr.IPv6, number]) && bytes.slice(12, 15).some((b) => b !== 0);
  if (isTail || isCompatible) return new ipaddr.IPv4(bytes.slice(12, 16));
  if (ipv6.match(SIX_TO_FOUR as [ipaddr.IPv6, number])) return new ipaddr.IPv4(bytes.slice(2, 6));
  return ipv6;
}

/** Ranges that ipaddr.js takes for unicast and that lead nowhere public. */
function isUnroutable(address: Address): boolean {
  if (address.kind() === 'ipv4') return false;
  return address.toString() === LOOPBACK6.toString() || !address.match(GLOBAL_UNICAST as never, 3);
}

const GLOBAL_UNICAST = ipaddr.parse('2000::');
