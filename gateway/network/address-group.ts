/**
 * Defines what counts as one address in limits per address (docs/http.md, "How much"). A customer usually has a whole
 * IPv6 /64 and can use any of its 2^64 addresses, so a /64 counts as one address. An IPv4-mapped IPv6 address
 * (`::ffff:192.0.2.1`) counts as the IPv4 address. Pure.
 */
import ipaddr from 'ipaddr.js';

/** The number of 16-bit parts in the network part of an IPv6 /64. */
const PREFIX_PARTS = 4;

/** The group of an address, as text. A text that is not an IP address is its own group. */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address;
  const plain = plainAddress(address);
  if (!plain.includes(':')) return plain;
  if (!ipaddr.IPv6.isValid(plain)) return address;
  const { parts } = ipaddr.IPv6.parse(plain);
  const network = parts.slice(0, PREFIX_PARTS).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}

/** The address without an IPv6 zone (`%eth0`), and as IPv4 if it is IPv4-mapped. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%', 1);
  if (!bare.includes(':') || !ipaddr.IPv6.isValid(bare)) return bare;
  const parsed = ipaddr.IPv6.parse(bare);
  return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : bare;
}
