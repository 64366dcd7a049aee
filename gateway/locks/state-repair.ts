/**
 * Repairs the states of locks that are not judged: restores torn states, which the judge may have left half changed
 * when it threw, and judges a lock's log again (`device rejudge`). Every method must be called while no commit is being
 * written and nothing is being judged. Used by `Locks` (locks.ts).
 */
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { JudgeFailure, messageOf, type VersionedJudge } from '../ingest/judging.js';
import type { Judged } from '../store/contract/log/commit.js';
import type { Store } from '../store/contract/store.js';
import type { DeviceState } from './device-state.js';
import type { KnownLock } from './known-lock.js';
import { replayState } from './log-replay.js';
import type { LoadedState } from './rebuild-state.js';

/** A repaired state of a lock that must be stored, with the findings of judging the log again. */
interface RepairedLock {
  readonly lock: KnownLock;
  readonly state: DeviceState;
  readonly judged: readonly Judged[];
}

export interface StateRepairParts {
  readonly store: Store;
  readonly judging: VersionedJudge;
  /** Loads the stored states of these locks. */
  readonly loadStates: (deviceIds: readonly number[]) => Promise<ReadonlyMap<number, LoadedState>>;
  /** The state of a lock of which nothing is stored. */
  readonly newState: (mac: Mac) => DeviceState;
  /** Replaces the state in memory by a stored one, if this lock is still in memory. */
  readonly onRepaired: (lock: KnownLock, state: DeviceState) => void;
}

export class StateRepair {
  readonly #parts: StateRepairParts;

  constructor(parts: StateRepairParts) {
    this.#parts = parts;
  }

  /**
   * Replaces each torn state by the stored one, which is then stored with a mark that the lock is not judged. A lost
   * state, which could not be read, is restored, and the events since then are judged.
   *
   * @throws StoreFailure if the store can't be read or written; the caller must then try again
   */
  async repair(torn: readonly KnownLock[]): Promise<void> {
    const { loadStates, newState } = this.#parts;
    const loaded = await loadStates(torn.map(({ deviceId }) => deviceId));
    const repaired: RepairedLock[] = [];
    for (const lock of torn) {
      const stored = loaded.get(lock.deviceId)?.state ?? newState(lock.mac);
      const { unjudged } = lock.state;
      if (lock.isLost && stored.unjudged === undefined)
        repaired.push(
          lock.unjudgedEvents === 0 ? { lock, state: stored, judged: [] } : await this.#replayOrMark(lock, stored),
        );
      else repaired.push({ lock, state: { ...stored, unjudged: unjudged ?? stored.unjudged }, judged: [] });
    }
    await this.#store(repaired);
  }

  /** The lock's state replayed from the log; if the judge fails again, the stored state, marked as not judged. */
  async #replayOrMark(lock: KnownLock, stored: DeviceState): Promise<RepairedLock> {
    try {
      return await replayState(this.#parts.store, this.#parts.judging, lock, stored);
    } catch (error) {
      if (!(error instanceof JudgeFailure)) throw error;
      return { lock, state: { ...stored, unjudged: lock.state.unjudged }, judged: [] };
    }
  }

  /**
   * Replays the whole log of a lock that is not judged, and stores the findings since the judging stopped.
   *
   * @throws LockgateError `judge-failed`
   * @throws StoreFailure
   */
  async rejudge(lock: KnownLock): Promise<void> {
    try {
      await this.#store([await replayState(this.#parts.store, this.#parts.judging, lock)]);
    } catch (error) {
      if (!(error instanceof JudgeFailure)) throw error;
      const [mac, why] = [formatMac(lock.mac), messageOf(error.cause)];
      throw new LockgateError('judge-failed', `${mac} is still not judged: the judge failed again: ${why}`);
    }
  }

  /** Stores repaired states, then has them replace those in memory. */
  async #store(repaired: readonly RepairedLock[]): Promise<void> {
    if (repaired.length === 0) return;
    const states = new Map(repaired.map(({ lock, state }) => [lock.deviceId, JSON.stringify(state)]));
    await this.#parts.store.append({ incoming: [], judged: repaired.flatMap(({ judged }) => judged), states });
    for (const { lock, state } of repaired) this.#parts.onRepaired(lock, state);
  }
}
