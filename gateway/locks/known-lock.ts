/** A lock in memory: its state, and what the gateway must remember about that state. Used by `Locks` (locks.ts). */
import type { Presence } from '../../proto/power/judge/presence.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { DeviceState } from './device-state.js';

export interface KnownLock {
  readonly deviceId: number;
  readonly mac: Mac;
  state: DeviceState;
  /** The reflash marks: when the lock's flash was wiped (protocol.md §1), ms since the epoch, earliest first. */
  marks: readonly number[];
  /** The presence that was last announced. */
  presence: Presence;
  /**
   * When its next tick is due, ms since the epoch, by the run's clock (wall-clock time, except in a sped-up
   * simulation).
   */
  dueMs: number;
  /** Whether the store has a state of the lock, however old. */
  isStored: boolean;
  /** The number of the last commit draft that touched it (commit-draft.ts). */
  lastDraftNumber: number;
  /** The state in memory may be half written, or older than the log: it must not be stored. */
  isTorn: boolean;
  /** The stored state could not be read. The lock is judged again as soon as reading succeeds. */
  isLost: boolean;
  /** How many events of the lock were not judged since its judging stopped. */
  unjudgedEvents: number;
}

/** The announced presence of a lock until the first one is announced. */
export const NEVER_SEEN: Presence = Object.freeze({ presence: 'never-seen' });

/** A lock that gets no ticks yet. */
export function newKnownLock(
  { deviceId, mac, state, marks }: Pick<KnownLock, 'deviceId' | 'mac' | 'state' | 'marks'>,
  isStored: boolean,
): KnownLock {
  return {
    deviceId,
    mac,
    state,
    marks,
    presence: NEVER_SEEN,
    dueMs: Number.POSITIVE_INFINITY,
    isStored,
    lastDraftNumber: 0,
    isTorn: false,
    isLost: false,
    unjudgedEvents: 0,
  };
}
