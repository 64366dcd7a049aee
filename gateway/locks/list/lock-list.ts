/**
 * Lists locks page by page: filtered, searched and sorted, by their present states (interfaces.md §2, §4). A page is
 * read in slices, between which other work runs. A list by MAC reads only what its page needs; any other order reads
 * all locks once, for its first page, and keeps the order for the further ones (kept-orders.ts).
 */
import type { Clock } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Device, Store } from '../../store/contract/store.js';
import { KeptOrders } from './kept-orders.js';
import { type ListedLock, type LockStates, listedLock } from './listed-lock.js';
import { type LockFilter, lockMatcher } from './lock-filter.js';
import { type LockOrder, type Place, placeComparer, placeOf } from './lock-order.js';
import type { ReadTurns } from './read-turns.js';
import { sortInTurns } from './sort-in-turns.js';

/** Locks that are read in one slice: some 3 ms. */
const LOCKS_PER_SLICE = 500;

export interface LockListParts {
  readonly store: Pick<Store, 'readDevices' | 'findDevices'>;
  readonly states: LockStates;
  /** The run's clock. */
  readonly clock: Clock;
  readonly turns: ReadTurns;
}

/** Which locks are asked for, and in which order. */
export interface LockListQuery {
  readonly filter: LockFilter;
  readonly order: LockOrder;
}

/** Where a page begins: after this lock. `orderId` and `offset` find it in a kept order. */
export interface LockPosition extends Place {
  readonly orderId: string | null;
  readonly offset: number;
}

export interface LockListPage {
  readonly locks: readonly ListedLock[];
  /** The position of the page's last lock; null if there is no further page. */
  readonly next: LockPosition | null;
  /** How many locks were read for it. */
  readonly rows: number;
}

/** A page that is being read. */
interface PageRead {
  readonly query: LockListQuery;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
  rows: number;
}

/** A lock in an order that is being made. */
interface OrderedLock extends Place {
  readonly deviceId: number;
}

export class LockList {
  readonly #parts: LockListParts;
  readonly #orders = new KeptOrders();

  constructor(parts: LockListParts) {
    this.#parts = parts;
  }

  /** One page. Rejects with the signal's reason once the caller has gone. */
  async page(
    query: LockListQuery,
    request: { readonly limit: number; readonly after?: LockPosition | undefined; readonly signal?: AbortSignal },
  ): Promise<LockListPage> {
    const read: PageRead = { query, limit: request.limit, signal: request.signal, rows: 0 };
    const { after } = request;
    const { key, isDescending } = query.order;
    if (key === 'mac' && !isDescending) return await this.#pageByMac(read, after?.mac);
    const list = JSON.stringify(query);
    const kept = after === undefined ? undefined : this.#keptOrder(list, after);
    if (after !== undefined && kept !== undefined)
      return await this.#pageOfOrder(read, { deviceIds: kept, id: after.orderId, offset: after.offset });
    const ordered = await this.#orderNow(read, after);
    const deviceIds = Uint32Array.from(ordered, ({ deviceId }) => deviceId);
    const id = ordered.length > read.limit ? this.#orders.keep(list, deviceIds) : null;
    return await this.#pageOfOrder(read, { deviceIds, id, offset: 0 });
  }

  /** The order that a list began with; undefined if it was dropped. */
  #keptOrder(list: string, { orderId, offset }: LockPosition): Uint32Array | undefined {
    const isPossible = orderId !== null && Number.isSafeInteger(offset) && offset >= 0;
    return isPossible ? this.#orders.find(list, orderId) : undefined;
  }

  async #pageByMac(read: PageRead, afterMac: Mac | undefined): Promise<LockListPage> {
    const { limit } = read;
    const locks: ListedLock[] = [];
    for await (const found of this.#matching(read, afterMac, Math.min(limit + 1, LOCKS_PER_SLICE))) {
      locks.push(...found);
      if (locks.length <= limit) continue;
      const { mac } = (locks[limit - 1] as ListedLock).device;
      return { locks: locks.slice(0, limit), next: { orderId: null, offset: 0, value: 0, mac }, rows: read.rows };
    }
    return { locks, next: null, rows: read.rows };
  }

  /** The locks that pass the filter, by MAC, slice by slice. */
  async *#matching(read: PageRead, afterMac: Mac | undefined, perSlice: number): AsyncGenerator<ListedLock[]> {
    const { store, states, clock, turns } = this.#parts;
    const { filter } = read.query;
    const passes = lockMatcher(filter);
    for (let last = afterMac; ; ) {
      await turns.next(read.signal);
      const devices = await store.readDevices({ merchantId: filter.merchantId, afterMac: last, limit: perSlice });
      const nowMs = clock.now();
      read.rows += devices.length;
      yield devices.map((device) => listedLock(device, states, nowMs)).filter(passes);
      if (devices.length < perSlice) return;
      last = devices.at(-1)?.mac;
    }
  }

  /** The locks that pass the filter in the order as of now; only those after a place, if one is given. */
  async #orderNow(read: PageRead, after: Place | undefined): Promise<readonly OrderedLock[]> {
    const { order } = read.query;
    const compare = placeComparer(order);
    const found: OrderedLock[] = [];
    for await (const locks of this.#matching(read, undefined, LOCKS_PER_SLICE))
      for (const lock of locks) {
        const place = placeOf(lock, order.key);
        if (after === undefined || compare(place, after) > 0) found.push({ ...place, deviceId: lock.device.id });
      }
    return await sortInTurns(found, compare, this.#parts.turns, read.signal);
  }

  /** A page of an order: locks that were removed or moved since it was made are left out. */
  async #pageOfOrder(
    read: PageRead,
    { deviceIds, id, offset }: { readonly deviceIds: Uint32Array; readonly id: string | null; readonly offset: number },
  ): Promise<LockListPage> {
    const { store, states, clock, turns } = this.#parts;
    const { filter, order } = read.query;
    const locks: ListedLock[] = [];
    let at = offset;
    while (locks.length < read.limit && at < deviceIds.length) {
      await turns.next(read.signal);
      const slice = [...deviceIds.subarray(at, at + Math.min(read.limit - locks.length, LOCKS_PER_SLICE))];
      at += slice.length;
      read.rows += slice.length;
      const found = new Map((await store.findDevices(slice)).map((device) => [device.id, device]));
      const nowMs = clock.now();
      const isWanted = (device: Device | undefined): device is Device =>
        device !== undefined && (filter.merchantId === undefined || device.merchantId === filter.merchantId);
      for (const device of slice.map((deviceId) => found.get(deviceId)).filter(isWanted))
        locks.push(listedLock(device, states, nowMs));
    }
    const last = locks.at(-1);
    const { rows } = read;
    if (last === undefined || at >= deviceIds.length) return { locks, next: null, rows };
    return { locks, next: { ...placeOf(last, order.key), orderId: id, offset: at }, rows };
  }
}
