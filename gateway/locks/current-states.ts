/**
 * Wraps the store so that its readers get the current states of locks. The gateway writes a lock's state only
 * occasionally (dirty-states.ts), so the state in memory may be newer than the stored one; readers get the newer state.
 * The wrapper changes no stored state.
 */
import type { DeviceReading, StoredState } from '../store/contract/devices/device.js';
import type { Store } from '../store/contract/store.js';
import { forwardStore } from '../store/contract/store-methods.js';
import type { Locks } from './locks.js';

/** Whether a method's result contains lock states: a reading or a stored state, or a list of them. */
type HasState<Result> =
  NonNullable<Result> extends DeviceReading | StoredState | readonly (DeviceReading | StoredState)[] ? true : false;

/**
 * The store's methods whose results contain lock states. If the store's contract gains such a method and
 * `withCurrentStates` does not override it, this file does not compile.
 */
type StateMethods = {
  [Name in keyof Store]: Store[Name] extends (...args: never[]) => Promise<infer Result>
    ? HasState<Result> extends true
      ? Name
      : never
    : never;
}[keyof Store];

/** The same store, but its results have the current states. */
export function withCurrentStates(store: Store, locks: Locks): Store {
  const newest = (deviceId: number, stored: string | null): string | null =>
    stored === null ? null : (locks.newerState(deviceId) ?? stored);
  const withNewestState = (reading: DeviceReading): DeviceReading => {
    const state = newest(reading.device.id, reading.state);
    return state === reading.state ? reading : { ...reading, state };
  };
  // `readDeviceState` returns a string, which `HasState` can't recognise as a state.
  const overrides: Pick<Store, StateMethods | 'readDeviceState'> = {
    readDeviceState: async (deviceId) => newest(deviceId, await store.readDeviceState(deviceId)),
    readDeviceStates: async (deviceIds) =>
      (await store.readDeviceStates(deviceIds)).map((stored) => {
        return { ...stored, state: newest(stored.deviceId, stored.state) ?? stored.state };
      }),
    listDevices: async () => (await store.listDevices()).map(withNewestState),
    findDevice: async (mac) => {
      const reading = await store.findDevice(mac);
      return reading === null ? null : withNewestState(reading);
    },
  };
  return { ...forwardStore(store), ...overrides };
}
