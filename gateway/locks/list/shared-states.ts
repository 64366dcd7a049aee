/**
 * The states of locks for lists, if several gateways share the store: a lock that another gateway serves has its stored
 * state, which may lack the latest uplinks (../dirty-states.ts).
 */
import type { LockOwnership } from '../../store/contract/slots/ownership.js';
import type { Store } from '../../store/contract/store.js';
import { readDeviceState } from '../device-state.js';
import type { KnownLock } from '../locks.js';
import type { LockStates } from './listed-lock.js';

export class SharedStates implements LockStates {
  readonly #own: LockStates;
  readonly #store: Pick<Store, 'readDeviceStates'>;
  readonly #owners: Pick<LockOwnership, 'owns'>;

  /** @param own the locks that this gateway serves */
  constructor(own: LockStates, store: Pick<Store, 'readDeviceStates'>, owners: Pick<LockOwnership, 'owns'>) {
    this.#own = own;
    this.#store = store;
    this.#owners = owners;
  }

  find(deviceId: number): Pick<KnownLock, 'state'> | undefined {
    return this.#own.find(deviceId);
  }

  async read(deviceIds: readonly number[]): Promise<LockStates> {
    const elsewhere = deviceIds.filter((deviceId) => !this.#owners.owns(deviceId, 'lock'));
    if (elsewhere.length === 0) return this.#own;
    const states = new Map<number, Pick<KnownLock, 'state'>>();
    for (const { deviceId, state: json } of await this.#store.readDeviceStates(elsewhere)) {
      const state = readDeviceState(json);
      // One that can't be read is repaired by the gateway that serves the lock.
      if (state.ok) states.set(deviceId, { state: state.value });
    }
    return { find: (deviceId) => this.#own.find(deviceId) ?? states.get(deviceId) };
  }
}
