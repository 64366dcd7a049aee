/**
 * What counts as one address where clients are limited by theirs. A single customer holds a whole IPv6 /64 and can use
 * any of its 2^64 addresses, so a /64 is one address; an IPv4 address written as an IPv6 one (`::ffff:192.0.2.1`) is
 * the IPv4 address (interfaces.md §2, Fairness).
 */
import ipaddr from 'ipaddr.js';

/** How many 16-bit parts of an IPv6 address make a /64. */
const NETWORK_PARTS = 4;

/** The group of an address, as text. What is not an IP address is its own group. */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address;
  const plain = plainAddress(address);
  if (!plain.includes(':')) return plain;
  if (!ipaddr.IPv6.isValid(plain)) return address;
  const { parts } = ipaddr.IPv6.parse(plain);
  const network = parts.slice(0, NETWORK_PARTS).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

/** The address without an IPv6 zone (`%eth0`), as IPv4 where it is one in IPv6 spelling. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%', 1);
  if (!bare.includes(':') || !ipaddr.IPv6.isValid(bare)) return bare;
  const parsed = ipaddr.IPv6.parse(bare);
  return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : bare;
}
