/**
 * The store with the states of this moment. The gateway writes a lock's state only now and then (dirty-states.ts), so
 * the one in memory may be newer than the stored one; who asks how locks are gets the newer one.
 */
import type { DeviceReading, Store, StoredState } from '../store/contract/store.js';
import { forwardStore } from '../store/contract/store-methods.js';
import type { Locks } from './locks.js';

/** A reading that has a lock's state, or a list of them. */
type HasState<Result> =
  NonNullable<Result> extends DeviceReading | StoredState | readonly (DeviceReading | StoredState)[] ? true : false;

/** The methods of the store that answer with states: one that the contract gains is missing below. */
type StateMethods = {
  [Name in keyof Store]: Store[Name] extends (...args: never[]) => Promise<infer Result>
    ? HasState<Result> extends true
      ? Name
      : never
    : never;
}[keyof Store];

/** The same store, whose states are those of this moment. */
export function withCurrentStates(store: Store, locks: Locks): Store {
  const current = (deviceId: number, stored: string | null): string | null =>
    stored === null ? null : (locks.newerState(deviceId) ?? stored);
  const renewed = (reading: DeviceReading): DeviceReading => {
    const state = current(reading.device.id, reading.state);
    return state === reading.state ? reading : { ...reading, state };
  };
  const states: Pick<Store, StateMethods | 'readDeviceState'> = {
    readDeviceState: async (deviceId) => current(deviceId, await store.readDeviceState(deviceId)),
    readDeviceStates: async (deviceIds) =>
      (await store.readDeviceStates(deviceIds)).map((each) => {
        return { ...each, state: current(each.deviceId, each.state) ?? each.state };
      }),
    listDevices: async () => (await store.listDevices()).map(renewed),
    findDevice: async (mac) => {
      const found = await store.findDevice(mac);
      return found === null ? null : renewed(found);
    },
  };
  return { ...forwardStore(store), ...states };
}
