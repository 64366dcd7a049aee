/**
 * Holds the stored data of all locks in service in memory, in the order of their MACs, so that a list can be filtered
 * and sorted without reading the store: a few hundred bytes for each lock. It is loaded at the first list; after that
 * only locks that were written are read again (watch-devices.ts tells which).
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Device } from '../../store/contract/devices/device.js';
import type { Store } from '../../store/contract/store.js';
import type { ReadTurns } from './read-turns.js';

/** Number of locks that are read in one slice, which takes some 3 ms. */
const LOCKS_PER_SLICE = 1_000;

export class LockDirectory {
  readonly #store: Pick<Store, 'readDevices' | 'findDevice'>;
  /** In the order of MACs: all locks, and those of each merchant. */
  #all: Device[] = [];
  #ofMerchant = new Map<number, Device[]>();
  readonly #byId = new Map<number, Device>();
  /** Locks that were written since they were read. */
  readonly #changed = new Set<Mac>();
  #isLoaded = false;
  /** Counts the changes that require all locks to be read again. */
  #epoch = 0;
  #updating: Promise<void> | undefined;

  constructor(store: Pick<Store, 'readDevices' | 'findDevice'>) {
    this.#store = store;
  }

  /** Must be called after each write of these locks; without MACs, after a write that may change any lock. */
  changed(macs?: readonly Mac[]): void {
    if (macs === undefined) {
      this.#epoch += 1;
      this.#isLoaded = false;
    } else for (const mac of macs) this.#changed.add(mac);
  }

  /**
   * Reads what has changed. The locks are as stored at the time of this call or later.
   *
   * @param turns lets other work run between slices
   */
  async update(turns: ReadTurns): Promise<void> {
    // An update that is under way may have read a lock before it was written.
    await this.#updating;
    while (!this.#isLoaded || this.#changed.size > 0) {
      this.#updating ??= this.#updateOnce(turns).finally(() => {
        this.#updating = undefined;
      });
      await this.#updating;
      // What was written before this call has been read now. `#changed` may have got later writes.
      if (this.#isLoaded) return;
    }
  }

  /** A lock in service; undefined if there is none with this id. */
  find(deviceId: number): Device | undefined {
    return this.#byId.get(deviceId);
  }

  /** The lock in service with this MAC; undefined if there is none. */
  findByMac(mac: Mac): Device | undefined {
    const device = this.#all[indexAfter(this.#all, mac) - 1];
    return device?.mac === mac ? device : undefined;
  }

  /** The locks of a merchant, or of all, in the order of their MACs. A later update replaces the list. */
  locks(merchantId: number | undefined): readonly Device[] {
    return merchantId === undefined ? this.#all : (this.#ofMerchant.get(merchantId) ?? []);
  }

  async #updateOnce(turns: ReadTurns): Promise<void> {
    if (!this.#isLoaded) await this.#load(turns);
    const macs = [...this.#changed];
    // So many locks are read faster all together than one by one: `update` then loads all locks.
    if (macs.length > LOCKS_PER_SLICE) return this.changed();
    for (const mac of macs) {
      // Removed before the lock is read: a write during the read adds it again.
      this.#changed.delete(mac);
      await turns.next();
      this.#replace(mac, (await this.#store.findDevice(mac))?.device);
    }
  }

  async #load(turns: ReadTurns): Promise<void> {
    const epoch = this.#epoch;
    this.#changed.clear();
    const all: Device[] = [];
    for (let afterMac: Mac | undefined; ; afterMac = all.at(-1)?.mac) {
      await turns.next();
      const slice = await this.#store.readDevices({ afterMac, limit: LOCKS_PER_SLICE });
      all.push(...slice);
      if (slice.length < LOCKS_PER_SLICE) break;
    }
    if (epoch !== this.#epoch) return;
    this.#all = all;
    this.#byId.clear();
    this.#ofMerchant = new Map();
    for (const device of all) {
      this.#byId.set(device.id, device);
      const list = this.#ofMerchant.get(device.merchantId);
      if (list === undefined) this.#ofMerchant.set(device.merchantId, [device]);
      else list.push(device);
    }
    this.#isLoaded = true;
  }

  /** Replaces a lock's data, adds the lock, or removes it if `device` is undefined. */
  #replace(mac: Mac, device: Device | undefined): void {
    const at = indexAfter(this.#all, mac) - 1;
    const before = this.#all[at]?.mac === mac ? this.#all[at] : undefined;
    if (before !== undefined) {
      this.#byId.delete(before.id);
      this.#ofMerchant.set(before.merchantId, without(this.#ofMerchant.get(before.merchantId) ?? [], mac));
      this.#all = without(this.#all, mac);
    }
    if (device === undefined) return;
    this.#byId.set(device.id, device);
    this.#ofMerchant.set(device.merchantId, withDevice(this.#ofMerchant.get(device.merchantId) ?? [], device));
    this.#all = withDevice(this.#all, device);
  }
}

/** The index of the first lock after a MAC, in a list in the order of MACs. */
export function indexAfter(devices: readonly Device[], mac: Mac): number {
  let [low, high] = [0, devices.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((devices[middle] as Device).mac <= mac) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A new list, since readers may be in the middle of the old one. */
function withDevice(devices: readonly Device[], device: Device): Device[] {
  return devices.toSpliced(indexAfter(devices, device.mac), 0, device);
}

function without(devices: readonly Device[], mac: Mac): Device[] {
  return devices.toSpliced(indexAfter(devices, mac) - 1, 1);
}
