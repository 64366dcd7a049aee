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
export interface Tenant {
  readonly address: string;
  /** Whether a trusted proxy opened it; a proxy serves many clients, so the limit per address does not apply. */
  readonly isProxy: boolean;
  /** Closes the connection to make room. */
  readonly end: () => void;
}

type State = 'silent' | 'busy' | 'idle';

/** Where a connection is counted, and its state. */
interface Place {
  readonly room: Room;
  state: State;
}

/** A group of connections that make room for each other: those of one address, or the reserve. */
class Room {
  readonly isProxy: boolean;
  readonly isReserve: boolean;
  count = 0;
  /** The group's silent and its idle connections, which may be closed; longest in that state first. */
  readonly silent = new Set<Tenant>();
  readonly idle = new Set<Tenant>();

  constructor(isProxy: boolean, isReserve: boolean) {
    this.isProxy = isProxy;
    this.isReserve = isReserve;
  }

  /** The connection to close next to make room: the longest silent one, or else the longest idle one. */
  get nextToClose(): Tenant | undefined {
    for (const tenants of [this.silent, this.idle]) for (const tenant of tenants) return tenant;
    return undefined;
  }

  get closableCount(): number {
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
  admit(tenant: Tenant, descriptors: DescriptorRoom = 'enough'): boolean {
    const room = this.#roomOf(tenant);
    const reserve = this.#reserve;
    const isRoomMade = this.#makeRoom(room, descriptors === 'enough');
    if (descriptors === 'none') return false;
    const isReserveFree = reserve.count < this.#limits.reserve;
    if (isRoomMade) this.#enter(tenant, room);
    else if (isReserveFree || this.#closeOne(reserve)) this.#enter(tenant, reserve);
    else return false;
    return true;
  }

  /** Whether the connection is in the reserve. */
  isReserved(tenant: Tenant): boolean {
    return this.#places.get(tenant)?.room.isReserve === true;
  }

  /** Records that a request of the connection has started, or that its last one has finished. */
  note(tenant: Tenant, state: 'busy' | 'idle'): void {
    const place = this.#places.get(tenant);
    if (place === undefined || place.state === state) return;
    if (place.state !== 'busy') place.room[place.state].delete(tenant);
    place.state = state;
    if (state === 'idle') place.room.idle.add(tenant);
  }

  /** Records that the connection is closed. */
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

  /**
   * Makes room for one more connection, by closing another one if necessary. Returns whether there is room.
   *
   * @param hasDescriptor whether a file descriptor is free, so that no connection need be closed for that reason
   */
  #makeRoom(room: Room, hasDescriptor: boolean): boolean {
    const { total, perAddress } = this.#limits;
    if (!room.isProxy && perAddress > 0 && room.count >= perAddress) return this.#closeOne(room);
    if (hasDescriptor && this.#places.size - this.#reserve.count < total) return true;
    const largest = this.#largestRoom();
    return largest !== undefined && this.#closeOne(largest);
  }

  /** The room with the most connections that may be closed; a trusted proxy's room only if there is no other. */
  #largestRoom(): Room | undefined {
    let largest: Room | undefined;
    for (const room of this.#rooms.values()) {
      if (room.closableCount === 0) continue;
      const isPreferred = largest === undefined || (largest.isProxy && !room.isProxy);
      if (isPreferred || (room.isProxy === largest?.isProxy && room.closableCount > (largest?.closableCount ?? 0)))
        largest = room;
    }
    return largest;
  }

  /** Closes one connection of the room. Returns false if all are busy. */
  #closeOne(room: Room): boolean {
    const tenant = room.nextToClose;
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
