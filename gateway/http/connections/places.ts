/**
 * Decides which connections to an HTTP port may stay open: a maximum in total, a maximum for each address, and a small
 * reserve, so that a full port still answers operators and probes. Touches no socket: the caller closes connections.
 *
 * A connection is *silent* until its first request arrives, *busy* while a request is being served, *idle* between
 * requests. When there is no room for a new connection, the longest silent one is closed, or else the longest idle one:
 * of the same address if that has too many, otherwise of the address with the most. A busy connection is never closed
 * to make room. If all are busy, the new one gets a place in the reserve, where only operators and probes are answered;
 * a full reserve makes room in the same way.
 */
import { addressGroup } from '../../network/address-group.js';
import type { DescriptorRoom } from '../../network/descriptors.js';

export interface PlaceLimits {
  /** Maximum number of connections, without the reserve. */
  readonly total: number;
  /** Maximum number of connections of one address (address-group.ts); 0 for no limit. */
  readonly perAddress: number;
  /** Additional connections, for operators and probes. */
  readonly reserve: number;
}

/** An open connection that holds a place. */
export interface OpenConnection {
  readonly address: string;
  /** Whether a trusted proxy opened it; a proxy serves many clients, so the limit per address does not apply. */
  readonly isProxy: boolean;
  /** Closes the connection to make room. */
  readonly end: () => void;
}

type State = 'silent' | 'busy' | 'idle';

/** Where a connection is counted, and its state. */
interface Place {
  readonly group: ConnectionGroup;
  state: State;
}

/** A group of connections that make room for each other: those of one address, or the reserve. */
class ConnectionGroup {
  readonly isProxy: boolean;
  readonly isReserve: boolean;
  count = 0;
  /** The group's silent and its idle connections, which may be closed; longest in that state first. */
  readonly silent = new Set<OpenConnection>();
  readonly idle = new Set<OpenConnection>();

  constructor(isProxy: boolean, isReserve: boolean) {
    this.isProxy = isProxy;
    this.isReserve = isReserve;
  }

  /** The connection to close next to make room: the longest silent one, or else the longest idle one. */
  get nextToClose(): OpenConnection | undefined {
    for (const connections of [this.silent, this.idle]) for (const connection of connections) return connection;
    return undefined;
  }

  get closableCount(): number {
    return this.silent.size + this.idle.size;
  }
}

export class Places {
  readonly #limits: PlaceLimits;
  readonly #groups = new Map<string, ConnectionGroup>();
  readonly #reserve = new ConnectionGroup(false, true);
  readonly #places = new Map<OpenConnection, Place>();

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /** The number of connections that have a place, including the reserve. */
  get count(): number {
    return this.#places.size;
  }

  /**
   * Gives a new connection a place. Returns false if there is none; the caller must then close it.
   *
   * @param descriptors whether the process has a file descriptor for it (descriptors.ts). `short`: it may only replace
   * another connection or use the reserve. `none`: it uses a reserved descriptor and can't stay; another connection is
   * closed nevertheless, to make room for the next new one
   */
  admit(connection: OpenConnection, descriptors: DescriptorRoom = 'enough'): boolean {
    const group = this.#groupOf(connection);
    const reserve = this.#reserve;
    const isRoomMade = this.#makeRoom(group, descriptors === 'enough');
    if (descriptors === 'none') return false;
    const isReserveFree = reserve.count < this.#limits.reserve;
    if (isRoomMade) this.#enter(connection, group);
    else if (isReserveFree || this.#closeOne(reserve)) this.#enter(connection, reserve);
    else return false;
    return true;
  }

  /** Whether the connection is in the reserve. */
  isReserved(connection: OpenConnection): boolean {
    return this.#places.get(connection)?.group.isReserve === true;
  }

  /** Records that a request of the connection has started, or that its last one has finished. */
  note(connection: OpenConnection, state: 'busy' | 'idle'): void {
    const place = this.#places.get(connection);
    if (place === undefined || place.state === state) return;
    if (place.state !== 'busy') place.group[place.state].delete(connection);
    place.state = state;
    if (state === 'idle') place.group.idle.add(connection);
  }

  /** Records that the connection is closed. */
  leave(connection: OpenConnection): void {
    const place = this.#places.get(connection);
    if (place === undefined) return;
    const { group, state } = place;
    this.#places.delete(connection);
    if (state !== 'busy') group[state].delete(connection);
    group.count -= 1;
    if (group.count === 0 && !group.isReserve) this.#groups.delete(addressGroup(connection.address));
  }

  #groupOf({ address, isProxy }: OpenConnection): ConnectionGroup {
    return this.#groups.get(addressGroup(address)) ?? new ConnectionGroup(isProxy, false);
  }

  /**
   * Makes room for one more connection, by closing another one if necessary. Returns whether there is room.
   *
   * @param hasDescriptor whether a file descriptor is free, so that no connection need be closed for that reason
   */
  #makeRoom(group: ConnectionGroup, hasDescriptor: boolean): boolean {
    const { total, perAddress } = this.#limits;
    if (!group.isProxy && perAddress > 0 && group.count >= perAddress) return this.#closeOne(group);
    if (hasDescriptor && this.#places.size - this.#reserve.count < total) return true;
    const largest = this.#largestGroup();
    return largest !== undefined && this.#closeOne(largest);
  }

  /** The group with the most connections that may be closed; a trusted proxy's group only if there is no other. */
  #largestGroup(): ConnectionGroup | undefined {
    let largest: ConnectionGroup | undefined;
    for (const group of this.#groups.values()) {
      if (group.closableCount === 0) continue;
      const isPreferred = largest === undefined || (largest.isProxy && !group.isProxy);
      if (isPreferred || (group.isProxy === largest?.isProxy && group.closableCount > (largest?.closableCount ?? 0)))
        largest = group;
    }
    return largest;
  }

  /** Closes one connection of the group. Returns false if all are busy. */
  #closeOne(group: ConnectionGroup): boolean {
    const connection = group.nextToClose;
    if (connection === undefined) return false;
    this.leave(connection);
    connection.end();
    return true;
  }

  #enter(connection: OpenConnection, group: ConnectionGroup): void {
    if (!group.isReserve) this.#groups.set(addressGroup(connection.address), group);
    group.count += 1;
    group.silent.add(connection);
    this.#places.set(connection, { group, state: 'silent' });
  }
}
