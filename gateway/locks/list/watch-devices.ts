/** Wraps the store so that the directory of locks, and other listeners, learn which locks are written. */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Store } from '../../store/contract/store.js';
import { forwardStore, type WriteMethod } from '../../store/contract/store-methods.js';

type HasMac = { readonly mac: Mac };

/**
 * The store's methods that write the data of locks: given their arguments, the locks that they write; `any` if it may
 * be any lock. A test compares the table with the store's methods.
 */
export const DEVICE_WRITES: Readonly<Record<string, (...args: never[]) => readonly Mac[] | 'any'>> = {
  addDevice: ({ mac }: HasMac) => [mac],
  addDevices: (devices: readonly HasMac[]) => devices.map(({ mac }) => mac),
  changeDevice: ({ mac }: HasMac) => [mac],
  describeLock: ({ mac }: HasMac) => [mac],
  removeDevice: (mac: Mac) => [mac],
  // Its argument is the id of the lock's row, not a MAC.
  eraseDevice: () => 'any',
};

/** Whether a method may change a merchant's name, which its locks show. A new merchant has no locks. */
function mayChangeMerchant(name: string): boolean {
  return /merchant/i.test(name) && name !== 'addMerchant';
}

/** Learns of writes. */
export interface DeviceListener {
  /** These locks were written; without MACs, it may be any. */
  changed(macs?: readonly Mac[]): void;
}

/** The same store, which tells the listeners of each write of a lock. */
export function watchDevices(store: Store, ...listeners: readonly DeviceListener[]): Store {
  return forwardStore(store, (name, write) => {
    const writtenBy = DEVICE_WRITES[name] ?? (mayChangeMerchant(name) ? () => 'any' as const : undefined);
    if (writtenBy === undefined) return write;
    const watched: WriteMethod = async (...args) => {
      try {
        return await write(...args);
      } finally {
        // Also after a failure: the write may have happened nevertheless.
        const macs = writtenBy(...(args as never[]));
        for (const listener of listeners) listener.changed(macs === 'any' ? undefined : macs);
      }
    };
    return watched;
  });
}
