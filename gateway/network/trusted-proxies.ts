/**
 * Finds the address of a client behind a proxy. A proxy writes the address into `X-Forwarded-For`, but any client can
 * write this header too. So the header counts only if the connection comes from a proxy that the operator trusts
 * (`--trusted-proxies`). The header is read from its end, where the nearest proxy wrote, up to the first address that
 * is not a trusted proxy's: the client may have invented everything before.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { AddressRange } from '../webhooks/sending/address-rule.js';
import { plainAddress } from './address-group.js';

/** Maximum number of header entries read from its end: no chain of proxies is longer. */
const MAX_HOPS = 16;

/** The parts of a request that {@link TrustedProxies} reads. */
export interface ForwardedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** The proxies that the operator trusts, as address ranges. */
export class TrustedProxies {
  readonly #ranges: readonly AddressRange[];

  constructor(ranges: readonly AddressRange[]) {
    this.#ranges = ranges;
  }

  /** Whether this address is a trusted proxy's. */
  trusts(address: string): boolean {
    if (this.#ranges.length === 0) return false;
    const plain = plainAddress(address);
    if (isIP(plain) === 0) return false;
    const parsed = ipaddr.parse(plain);
    // `match` takes only an address of the base's own kind, which the comparison of kinds ensures.
    return this.#ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base as never, bits));
  }

  /** The address of the client that made a request; empty if the connection has closed. */
  clientOf({ headers, socket }: ForwardedRequest): string {
    let client = plainAddress(socket.remoteAddress ?? '');
    if (!this.trusts(client)) return client;
    const hops = String(headers['x-forwarded-for'] ?? '').split(',');
    for (const hop of hops.slice(-MAX_HOPS).reverse()) {
      const address = addressOf(hop.trim());
      // No proxy writes such an entry, so everything before it is not trustworthy.
      if (address === undefined) break;
      client = address;
      if (!this.trusts(client)) break;
    }
    return client;
  }

  /** Whether a trusted proxy reports that its client uses TLS. */
  isHttps({ headers, socket }: ForwardedRequest): boolean {
    const [first = ''] = String(headers['x-forwarded-proto'] ?? '').split(',', 1);
    return first.trim().toLowerCase() === 'https' && this.trusts(socket.remoteAddress ?? '');
  }
}

/** The address in an entry of the header, without a port; undefined if the entry is not an address. */
function addressOf(entry: string): string | undefined {
  const [, bracketed, withPort] = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(entry) ?? [];
  const address = plainAddress(bracketed ?? withPort ?? entry);
  return isIP(address) === 0 ? undefined : address;
}
