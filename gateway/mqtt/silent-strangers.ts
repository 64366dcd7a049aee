/**
 * Who has connected and not yet said who they are, by address (network/address-group.ts). When places run out, who has
 * been silent for a while makes room for who comes: an idle socket costs a stranger nothing, and a lock sends its
 * CONNECT at once.
 */
import { addressGroup } from '../network/address-group.js';
import type { ConnectionFilter } from './connection-filter.js';

export class SilentStrangers {
  /** Of each address, the longest silent first. */
  readonly #of = new Map<string, Set<ConnectionFilter>>();

  add(gate: ConnectionFilter): void {
    const group = addressGroup(gate.address);
    const gates = this.#of.get(group);
    if (gates === undefined) this.#of.set(group, new Set([gate]));
    else gates.add(gate);
  }

  /** It has said who it is, or is gone. */
  remove(gate: ConnectionFilter): void {
    const group = addressGroup(gate.address);
    const gates = this.#of.get(group);
    if (gates?.delete(gate) === true && gates.size === 0) this.#of.delete(group);
  }

  /** How many there are of this address. */
  countOf(address: string): number {
    return this.#of.get(addressGroup(address))?.size ?? 0;
  }

  /** The longest silent one of this address. */
  oldestOf(address: string): ConnectionFilter | undefined {
    return first(this.#of.get(addressGroup(address)));
  }

  /** The longest silent one of the address that has the most. */
  oldestOfMost(): ConnectionFilter | undefined {
    let most: Set<ConnectionFilter> | undefined;
    for (const gates of this.#of.values()) if (gates.size > (most?.size ?? 0)) most = gates;
    return first(most);
  }
}

function first(gates: Iterable<ConnectionFilter> | undefined): ConnectionFilter | undefined {
  for (const gate of gates ?? []) return gate;
  return undefined;
}
