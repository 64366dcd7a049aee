/**
 * Holds the connections without a complete CONNECT ("silent strangers"), by address group (network/address-group.ts).
 * When the limit of connections is reached, the guard closes the longest silent one to make room: an idle socket costs
 * an attacker nothing, whereas a lock sends its CONNECT at once.
 */
import { addressGroup } from '../network/address-group.js';
import type { ConnectionFilter } from './connection-filter.js';

/** The connections that have not sent a complete CONNECT, by address group. */
export class SilentStrangers {
  /** The connections of each address group, longest silent first. */
  readonly #byAddress = new Map<string, Set<ConnectionFilter>>();

  add(filter: ConnectionFilter): void {
    const group = addressGroup(filter.address);
    const filters = this.#byAddress.get(group);
    if (filters === undefined) this.#byAddress.set(group, new Set([filter]));
    else filters.add(filter);
  }

  /** Must be called when the connection's CONNECT is complete, or the connection has closed. */
  remove(filter: ConnectionFilter): void {
    const group = addressGroup(filter.address);
    const filters = this.#byAddress.get(group);
    if (filters?.delete(filter) === true && filters.size === 0) this.#byAddress.delete(group);
  }

  /** The number of silent connections of this address. */
  countOf(address: string): number {
    return this.#byAddress.get(addressGroup(address))?.size ?? 0;
  }

  /** The longest silent connection of this address. */
  oldestOf(address: string): ConnectionFilter | undefined {
    return first(this.#byAddress.get(addressGroup(address)));
  }

  /** The longest silent connection of the address group with the most silent connections. */
  oldestOfLargestGroup(): ConnectionFilter | undefined {
    let largest: Set<ConnectionFilter> | undefined;
    for (const filters of this.#byAddress.values()) if (filters.size > (largest?.size ?? 0)) largest = filters;
    return first(largest);
  }
}

function first(filters: Iterable<ConnectionFilter> | undefined): ConnectionFilter | undefined {
  for (const filter of filters ?? []) return filter;
  return undefined;
}
