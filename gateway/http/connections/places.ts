/**
 * Decides which connections to an HTTP port may stay: a maximum in all, a maximum for each address, and a small
 * reserve, so that a port full of others still answers operators and probes.
 *
 * A connection is *silent* until its first request arrives, *busy* while a request is being served, *idle* between
 * requests. When there is no room for a new connection, the longest silent one is closed, or else the longest idle one:
 * of the same address if that has too many, otherwise of the address with the most. A busy one is never closed for
 * another. If all are busy, the new one gets a place in the reserve, where only operators and probes are answered; a
 * full reserve makes room in the same way.
 */
import { addressGroup } from '../../network/address-group.js';
import type { DescriptorRoom } from '../../network/descriptors.js';

export interface PlaceLimits {
  /** Connections in all, without the reserve. */
  readonly most: number;
  /** Connections of one address (address-group.ts); 0 for no limit. */
  readonly perAddress: number;
  /** Connections beyond those, for operators and probes. */
  readonly reserve: number;
}

/** A connection, as seen from here. */
export interface Tenant {
  readonly address: string;
  /** From a trusted proxy, which serves many clients: exempt from the limit per address. */
  readonly isProxy: boolean;
  /** Closes the connection to make room. */
  readonly end: () => void;
}

type State = 'silent' | 'busy' | 'idle';

interface Place {
  readonly room: Room;
  state: State;
}

/** A group of connections that make room for each other: those of one address, or the reserve. */
class Room {
  readonly isProxy: boolean;
  readonly isReserve: boolean;
  count = 0;
  /** Those that may be closed for others, the longest in that state first. */
  readonly silent = new Set<Tenant>();
  readonly idle = new Set<Tenant>();

  constructor(isProxy: boolean, isReserve: boolean) {
    this.isProxy = isProxy;
    this.isReserve = isReserve;
  }

  get next(): Tenant | undefined {
    for (const tenants of [this.silent, this.idle]) for (const tenant of tenants) return tenant;
    return undefined;
  }

  get endable(): number {
    return this.silent.size + this.idle.size;
  }
}

export class Places {
  readonly #limits: PlaceLimits;
  readonly #rooms = new Map<string, Room>();
  readonly #reserve = new Room(false, true);
  readonly #places = new Map<Tenant, Place>();

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /** Connections that have a place, the reserve included. */
  get count(): number {
    return this.#places.size;
  }

  /**
   * Gives a new connection a place. False if there is none, and the caller must close it.
   *
   * @param descriptors whether the process has a descriptor for it (descriptors.ts). `short`: it may only replace
   * another connection or use the reserve. `none`: it uses a descriptor kept for others and can't stay; another
   * connection is closed nevertheless, which makes room for the next one
   */
  admit(tenant: Tenant, descriptors: DescriptorRoom = 'enough'): boolean {
    const room = this.#roomOf(tenant);
    const reserve = this.#reserve;
    const hasRoom = this.#makeRoom(room, descriptors === 'enough');
    if (descriptors === 'none') return false;
    const hasReserve = reserve.count < this.#limits.reserve;
    if (hasRoom) this.#enter(tenant, room);
    else if (hasReserve || this.#end(reserve)) this.#enter(tenant, reserve);
    else return false;
    return true;
  }

  /** Whether it is in the reserve. */
  isReserved(tenant: Tenant): boolean {
    return this.#places.get(tenant)?.room.isReserve === true;
  }

  /** Records that a request of it has started, or the last one has finished. */
  note(tenant: Tenant, state: 'busy' | 'idle'): void {
    const place = this.#places.get(tenant);
    if (place === undefined || place.state === state) return;
    if (place.state !== 'busy') place.room[place.state].delete(tenant);
    place.state = state;
    if (state === 'idle') place.room.idle.add(tenant);
  }

  /** Records that it is closed. */
  leave(tenant: Tenant): void {
    const place = this.#places.get(tenant);
    if (place === undefined) return;
    const { room, state } = place;
    this.#places.delete(tenant);
    if (state !== 'busy') room[state].delete(tenant);
    room.count -= 1;
    if (room.count === 0 && !room.isReserve) this.#rooms.delete(addressGroup(tenant.address));
  }

  #roomOf({ address, isProxy }: Tenant): Room {
    return this.#rooms.get(addressGroup(address)) ?? new Room(isProxy, false);
  }

  #makeRoom(room: Room, hasRoom: boolean): boolean {
    const { most, perAddress } = this.#limits;
    if (!room.isProxy && perAddress > 0 && room.count >= perAddress) return this.#end(room);
    if (hasRoom && this.#places.size - this.#reserve.count < most) return true;
    const largest = this.#largest();
    return largest !== undefined && this.#end(largest);
  }

  /** The room with the most closable connections; those of trusted proxies come last. */
  #largest(): Room | undefined {
    let largest: Room | undefined;
    for (const room of this.#rooms.values()) {
      if (room.endable === 0) continue;
      const isBefore = largest === undefined || (largest.isProxy && !room.isProxy);
      if (isBefore || (room.isProxy === largest?.isProxy && room.endable > (largest?.endable ?? 0))) largest = room;
    }
    return largest;
  }

  #end(room: Room): boolean {
    const tenant = room.next;
    if (tenant === undefined) return false;
    this.leave(tenant);
    tenant.end();
    return true;
  }

  #enter(tenant: Tenant, room: Room): void {
    if (!room.isReserve) this.#rooms.set(addressGroup(tenant.address), room);
    room.count += 1;
    room.silent.add(tenant);
    this.#places.set(tenant, { room, state: 'silent' });
  }
}
