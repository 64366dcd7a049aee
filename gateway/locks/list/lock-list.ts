/**
 * Lists locks page by page: filtered, searched and sorted, by their present states (interfaces.md §2, §4). A page is
 * made in slices, between which other work runs. A list by MAC looks only at the locks up to the end of its page. For
 * any other order, the first page looks at all locks, and the order is kept for further pages (kept-orders.ts).
 */
import type { Clock } from '../../../proto/clock.js';
import { TROUBLES } from '../../../proto/power/troubles.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Device } from '../../store/contract/devices/device.js';
import { KeptOrders } from './kept-orders.js';
import { type ListedLock, type LockStates, listedLock, statesOf } from './listed-lock.js';
import { indexAfter, type LockDirectory } from './lock-directory.js';
import { deviceMatcher, type LockFilter, stateMatcher } from './lock-filter.js';
import { type LockOrder, type Place, placeComparer, type SortKey, sortValue } from './lock-order.js';
import { OrderGroups } from './order-groups.js';
import type { ReadTurns } from './read-turns.js';

/** Number of locks that are looked at in one slice, which takes some 1 ms. */
const LOCKS_PER_SLICE = 1_000;

export interface LockListParts {
  readonly directory: LockDirectory;
  /** Whether a lock belongs to a closed merchant, so that nothing about it needs attention. */
  readonly isClosed: (mac: Mac) => boolean;
  readonly states: LockStates;
  /** The run's clock (wall-clock time, except in a sped-up simulation). */
  readonly clock: Clock;
  readonly turns: ReadTurns;
}

/** Which locks to list, and in which order. */
export interface LockListQuery {
  readonly filter: LockFilter;
  readonly order: LockOrder;
}

/** Where a page starts: after this lock. `orderId` and `offset` are the position in a kept order. */
export interface ListPosition extends Place {
  readonly orderId: string | null;
  readonly offset: number;
}

export interface LockListPage {
  readonly locks: readonly ListedLock[];
  /** The position of the page's last lock; null if there is no further page. */
  readonly next: ListPosition | null;
  /** How many locks were looked at for the page. */
  readonly rows: number;
}

/** A page that is being read; `rows` counts the locks that were read for it. */
interface PageRead {
  readonly query: LockListQuery;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
  rows: number;
}

export class LockList {
  readonly #parts: LockListParts;
  readonly #orders = new KeptOrders();

  constructor(parts: LockListParts) {
    this.#parts = parts;
  }

  /** Reads the locks that were written; {@link merchantIdOf} then answers as of now or later. */
  async update(): Promise<void> {
    await this.#parts.directory.update(this.#parts.turns);
  }

  /** Whose lock it is; undefined if it is not in service. */
  merchantIdOf(mac: Mac): number | undefined {
    return this.#parts.directory.findByMac(mac)?.merchantId;
  }

  /** Returns one page. Rejects with the signal's reason if the signal is aborted, because the caller has hung up. */
  async page(
    query: LockListQuery,
    request: { readonly limit: number; readonly after?: ListPosition | undefined; readonly signal?: AbortSignal },
  ): Promise<LockListPage> {
    const read: PageRead = { query, limit: request.limit, signal: request.signal, rows: 0 };
    await this.#parts.directory.update(this.#parts.turns);
    const { after } = request;
    const { key, isDescending } = query.order;
    if (key === 'mac' && !isDescending) return await this.#pageByMac(read, after?.mac);
    const listKey = JSON.stringify(query);
    const keptOrder = after === undefined ? undefined : this.#keptOrder(listKey, after);
    if (after !== undefined && keptOrder !== undefined)
      return await this.#pageOfOrder(read, { deviceIds: keptOrder, id: after.orderId, offset: after.offset });
    const deviceIds = await this.#orderNow(read, after);
    const id = deviceIds.length > read.limit ? this.#orders.keep(listKey, deviceIds) : null;
    return await this.#pageOfOrder(read, { deviceIds, id, offset: 0 });
  }

  /** The order of the list's first page; undefined if it was dropped. */
  #keptOrder(listKey: string, { orderId, offset }: ListPosition): Uint32Array | undefined {
    const isPossible = orderId !== null && Number.isSafeInteger(offset) && offset >= 0;
    return isPossible ? this.#orders.find(listKey, orderId) : undefined;
  }

  async #pageByMac(read: PageRead, afterMac: Mac | undefined): Promise<LockListPage> {
    const { limit } = read;
    const locks: ListedLock[] = [];
    for await (const matches of this.#matching(read, afterMac)) {
      locks.push(...matches);
      if (locks.length <= limit) continue;
      const { mac } = (locks[limit - 1] as ListedLock).device;
      // An order by MAC has no other value, and needs no kept order.
      return { locks: locks.slice(0, limit), next: { orderId: null, offset: 0, value: 0, mac }, rows: read.rows };
    }
    return { locks, next: null, rows: read.rows };
  }

  /** The locks that pass the filter, by MAC, slice by slice. */
  async *#matching(read: PageRead, afterMac: Mac | undefined): AsyncGenerator<ListedLock[]> {
    const { directory, states, clock, turns } = this.#parts;
    const { filter } = read.query;
    const isWanted = deviceMatcher(filter);
    const hasWantedState = stateMatcher(filter);
    const devices = directory.locks(filter.merchantId);
    let index = afterMac === undefined ? 0 : indexAfter(devices, afterMac);
    // The first slice is as small as the page, which most often needs no other; one more lock shows whether a page
    // follows.
    for (let length = Math.min(read.limit + 1, LOCKS_PER_SLICE); index < devices.length; length = LOCKS_PER_SLICE) {
      await turns.next(read.signal);
      const slice = devices.slice(index, index + length);
      index += slice.length;
      read.rows += slice.length;
      const wanted = slice.filter(isWanted);
      const present = await statesOf(states, wanted);
      const nowMs = clock.now();
      yield wanted.map((device) => listedLock(device, present, nowMs)).filter(hasWantedState);
    }
  }

  /** What a lock is sorted by. Locks of closed merchants come last where trouble comes first: they can't connect. */
  #valueOf(lock: ListedLock, key: SortKey): Place['value'] {
    return key === 'trouble' && this.#parts.isClosed(lock.device.mac) ? TROUBLES.length : sortValue(lock, key);
  }

  /** The ids of the locks that pass the filter, in the present order; if a place is given, only the locks after it. */
  async #orderNow(read: PageRead, after: Place | undefined): Promise<Uint32Array> {
    const { order } = read.query;
    const compare = placeComparer(order);
    const groups = new OrderGroups(order);
    for await (const locks of this.#matching(read, undefined))
      for (const lock of locks) {
        const { id, mac } = lock.device;
        const value = this.#valueOf(lock, order.key);
        if (after === undefined || compare({ value, mac }, after) > 0) groups.add(value, id);
      }
    return await groups.sorted(this.#parts.turns, read.signal);
  }

  /** A page of an order. Locks that were removed or moved to another merchant since then are left out. */
  async #pageOfOrder(
    read: PageRead,
    { deviceIds, id, offset }: { readonly deviceIds: Uint32Array; readonly id: string | null; readonly offset: number },
  ): Promise<LockListPage> {
    const { directory, states, clock, turns } = this.#parts;
    const { filter, order } = read.query;
    const locks: ListedLock[] = [];
    let position = offset;
    while (locks.length < read.limit && position < deviceIds.length) {
      await turns.next(read.signal);
      const sliceLength = Math.min(read.limit - locks.length, LOCKS_PER_SLICE);
      const slice = [...deviceIds.subarray(position, position + sliceLength)];
      position += slice.length;
      read.rows += slice.length;
      const isListed = (device: Device | undefined): device is Device =>
        device !== undefined && (filter.merchantId === undefined || device.merchantId === filter.merchantId);
      const devices = slice.map((deviceId) => directory.find(deviceId)).filter(isListed);
      const present = await statesOf(states, devices);
      const nowMs = clock.now();
      for (const device of devices) locks.push(listedLock(device, present, nowMs));
    }
    const last = locks.at(-1);
    const { rows } = read;
    if (last === undefined || position >= deviceIds.length) return { locks, next: null, rows };
    const { mac } = last.device;
    return { locks, next: { value: this.#valueOf(last, order.key), mac, orderId: id, offset: position }, rows };
  }
}
