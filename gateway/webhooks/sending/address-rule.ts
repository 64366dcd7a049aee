/**
 * Decides which IP addresses a webhook may be sent to. An operator sets a merchant's URL, but its host name may later
 * resolve to any address. So the rule is applied to the address of every connection, just before it opens. Pure.
 *
 * Only public unicast addresses are allowed, and ranges that the operator allows. For an IPv6 address that embeds an
 * IPv4 address (mapped, compatible, NAT64, 6to4), the embedded address decides: packets would arrive there.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { LockgateError } from '../../../proto/errors.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** An address range: base and prefix length. */
export type AddressRange = [Address, number];

/** The number of bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2). */
const MAPPED_BITS = 96;

/**
 * Reads `127.0.0.0/8`, `::1/128` or a single address. Returns an IPv4-mapped range as its IPv4 range, since mapped
 * addresses are compared as IPv4: `::ffff:10.0.0.0/104` becomes 10.0.0.0/8.
 *
 * @throws LockgateError `input-range`
 */
export function parseRange(text: string): AddressRange {
  try {
    const [base = '', bits] = text.split('/');
    // ipaddr.js would read `10` as the address 0.0.0.10 and so accept `10/8`.
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
      `${JSON.stringify(text)} is not an address range: expected, for example, 127.0.0.0/8 or fd00::/8`,
    );
  }
}

/** Whether a webhook may be sent to this IP address, given as text; false if the text is not an IP address. */
export function isAllowedAddress(text: string, allowed: readonly AddressRange[]): boolean {
  // ipaddr.js would accept short forms such as 1.2.3; sockets get complete addresses.
  if (isIP(text) === 0) return false;
  const address = embeddedIpv4(ipaddr.parse(text));
  // `as never`: ipaddr.js compares only addresses of one kind, which TypeScript does not see here.
  if (allowed.some(([base, bits]) => base.kind() === address.kind() && address.match(base as never, bits))) return true;
  return address.range() === 'unicast' && !isMistakenForUnicast(address);
}

/**
 * Well-known ranges that are not public, with what they are for. They only explain a refusal: `isAllowedAddress`
 * decides without them, and refuses further ranges.
 */
const SPECIAL_RANGES: readonly (readonly [range: string, kind: string])[] = [
  ['127.0.0.0/8', 'loopback: the gateway’s own machine'],
  ['10.0.0.0/8', 'private'],
  ['172.16.0.0/12', 'private'],
  ['192.168.0.0/16', 'private'],
  ['169.254.0.0/16', 'link-local, with the metadata service of cloud machines'],
  ['100.64.0.0/10', 'shared by customers of a carrier'],
  ['0.0.0.0/8', 'this network'],
  ['224.0.0.0/4', 'multicast'],
  ['::1/128', 'loopback: the gateway’s own machine'],
  ['fc00::/7', 'private'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
];

/**
 * The range of a refused address, and what it is for; for an address in none of these ranges, a range with only the
 * address.
 */
export function specialRangeOf(text: string): { readonly range: string; readonly kind: string } {
  const address = embeddedIpv4(ipaddr.parse(text));
  for (const [range, kind] of SPECIAL_RANGES) {
    const [base, bits] = ipaddr.parseCIDR(range);
    if (base.kind() === address.kind() && address.match(base as never, bits)) return { range, kind };
  }
  return { range: `${address.toString()}/${address.kind() === 'ipv4' ? 32 : 128}`, kind: 'not public' };
}

const IPV4_COMPATIBLE = ipaddr.parseCIDR('::/96');
/** The well-known NAT64 prefix. Within the local-use prefix 64:ff9b:1::/48, the IPv4 address has no fixed position. */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');
const SIX_TO_FOUR = ipaddr.parseCIDR('2002::/16');

/** The IPv4 address that an IPv6 address embeds, or the address itself. */
function embeddedIpv4(address: Address): Address {
  if (address.kind() === 'ipv4') return address;
  const ipv6 = address as ipaddr.IPv6;
  if (ipv6.isIPv4MappedAddress()) return ipv6.toIPv4Address();
  const bytes = ipv6.toByteArray();
  const isNat64 = ipv6.match(NAT64 as [ipaddr.IPv6, number]);
  // ipaddr.js classifies ::127.0.0.1 as unicast. ::1 and :: are not IPv4-compatible addresses.
  const isCompatible = ipv6.match(IPV4_COMPATIBLE as [ipaddr.IPv6, number]) && bytes.slice(12, 15).some((b) => b !== 0);
  // The IPv4 address is in the last four bytes, and in a 6to4 address in the four after the prefix.
  if (isNat64 || isCompatible) return new ipaddr.IPv4(bytes.slice(12, 16));
  if (ipv6.match(SIX_TO_FOUR as [ipaddr.IPv6, number])) return new ipaddr.IPv4(bytes.slice(2, 6));
  return ipv6;
}

/** Whether ipaddr.js classifies the address as unicast though it is not public. */
function isMistakenForUnicast(address: Address): boolean {
  if (address.kind() === 'ipv4') return false;
  return !address.match(GLOBAL_UNICAST as never, GLOBAL_UNICAST_BITS);
}

/** Public IPv6 addresses are in 2000::/3 (RFC 4291 §2.4). */
const GLOBAL_UNICAST = ipaddr.parse('2000::');
const GLOBAL_UNICAST_BITS = 3;
