/**
 * Connections without a complete CONNECT, by address (network/address-group.ts). When places run out, the one that has
 * been silent the longest makes room for a new one: an idle socket costs an attacker nothing, and a lock sends its
 * CONNECT at once.
 */
import { addressGroup } from '../network/address-group.js';
import type { ConnectionFilter } from './connection-filter.js';

export class SilentStrangers {
  /** The connections of each address, the longest silent first. */
  readonly #byAddress = new Map<string, Set<ConnectionFilter>>();

  add(filter: ConnectionFilter): void {
    const group = addressGroup(filter.address);
    const filters = this.#byAddress.get(group);
    if (filters === undefined) this.#byAddress.set(group, new Set([filter]));
    else filters.add(filter);
  }

  /** Its CONNECT is complete, or it is gone. */
  remove(filter: ConnectionFilter): void {
    const group = addressGroup(filter.address);
    const filters = this.#byAddress.get(group);
    if (filters?.delete(filter) === true && filters.size === 0) this.#byAddress.delete(group);
  }

  /** How many this address has. */
  countOf(address: string): number {
    return this.#byAddress.get(addressGroup(address))?.size ?? 0;
  }

  /** The longest silent one of this address. */
  oldestOf(address: string): ConnectionFilter | undefined {
    return first(this.#byAddress.get(addressGroup(address)));
  }

  /** The longest silent one of the address that has the most. */
  oldestOfMost(): ConnectionFilter | undefined {
    let most: Set<ConnectionFilter> | undefined;
    for (const filters of this.#byAddress.values()) if (filters.size > (most?.size ?? 0)) most = filters;
    return first(most);
  }
}

function first(filters: Iterable<ConnectionFilter> | undefined): ConnectionFilter | undefined {
  for (const filter of filters ?? []) return filter;
  return undefined;
}
