/**
 * One lock in a list: its data in the store, and its present state from memory. A lock that has never connected has no
 * state. Pure.
 */
import { type Presence, presence } from '../../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { JudgingStop } from '../../ingest/judging.js';
import type { Device } from '../../store/contract/devices/device.js';
import type { DeviceState } from '../device-state.js';
import type { KnownLock } from '../locks.js';

export interface ListedLock {
  readonly device: Device;
  /** Null for a lock that has never connected. */
  readonly state: DeviceState | null;
  readonly presence: Presence;
  /** Set if the judge, which checks uplinks against the protocol's rules, failed at this lock: since when and why. */
  readonly unjudged: JudgingStop | undefined;
}

/** The locks in memory. */
export interface LockStates {
  find(deviceId: number): Pick<KnownLock, 'state'> | undefined;
  /**
   * Returns the states of the given locks; those of locks that other gateways serve are read from the store. Left out
   * if no other gateway serves any lock.
   */
  read?(deviceIds: readonly number[]): Promise<LockStates>;
}

/** The present states of these locks. */
export async function statesOf(states: LockStates, devices: readonly Pick<Device, 'id'>[]): Promise<LockStates> {
  return states.read === undefined ? states : await states.read(devices.map(({ id }) => id));
}

const NEVER_SEEN: Presence = Object.freeze({ presence: 'never-seen' });

/**
 * Returns the lock with its present state. @param nowMs by the run's clock (wall-clock time, except in a sped-up
 * simulation), ms since the epoch
 */
export function listedLock(device: Device, states: LockStates, nowMs: number): ListedLock {
  const state = states.find(device.id)?.state ?? null;
  if (state === null) return { device, state, presence: NEVER_SEEN, unjudged: undefined };
  const { belief, unjudged } = state;
  // The state of a lock that is not judged is frozen, so its presence is computed for the time of the failure.
  return { device, state, presence: presence(POWER_MODEL, belief, unjudged?.sinceMs ?? nowMs), unjudged };
}
