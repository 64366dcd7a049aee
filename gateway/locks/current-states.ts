/**
 * The store as those read it who ask how locks are: what is believed of a lock is written now and then
 * (dirty-states.ts), and where it is newer than what is stored, it is what they get.
 */

import type { DeviceReading, Store } from '../store/contract/store.js';
import type { Locks } from './locks.js';

type Reading = Pick<Store, 'readDeviceState' | 'readDeviceStates' | 'listDevices' | 'findDevice'>;

/** The same store, whose states are those of this moment. */
export function withCurrentStates(store: Store, locks: Locks): Store {
  const current = (deviceId: number, stored: string | null): string | null =>
    stored === null ? null : (locks.newerState(deviceId) ?? stored);
  const renewed = (reading: DeviceReading): DeviceReading => {
    const state = current(reading.device.id, reading.state);
    return state === reading.state ? reading : { ...reading, state };
  };
  const reading: Reading = {
    readDeviceState: async (deviceId) => current(deviceId, await store.readDeviceState(deviceId)),
    readDeviceStates: async () =>
      (await store.readDeviceStates()).map((each) => {
        return { ...each, state: current(each.deviceId, each.state) ?? each.state };
      }),
    listDevices: async () => (await store.listDevices()).map(renewed),
    findDevice: async (mac) => {
      const found = await store.findDevice(mac);
      return found === null ? null : renewed(found);
    },
  };
  return new Proxy(store, {
    get: (target, name) => {
      const own = (reading as unknown as Record<PropertyKey, unknown>)[name];
      if (own !== undefined) return own;
      const inherited = Reflect.get(target, name, target) as unknown;
      return typeof inherited === 'function' ? inherited.bind(target) : inherited;
    },
  });
}
