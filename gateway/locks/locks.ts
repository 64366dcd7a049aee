/**
 * Holds in memory all locks that have ever sent or done anything, with their states; of several gateways that share a
 * store, each has only the locks that it serves (ownership/). A state has the judge's belief: what the judge
 * (proto/power/judge) has concluded about the lock. A stored state and the store's log of uplinks together always
 * reproduce the state in memory (dirty-states.ts).
 *
 * Some findings depend only on time, such as a late lock. So each lock has a due time, which the judge sets, and at
 * that time a tick is requested: an event for the judge that only says what time it is.
 *
 * A lock is *judged*, or its judging has *stopped* because the judge threw (ingest/judging.ts). Then its state in
 * memory is *torn* (perhaps half written) until {@link Locks.repairTorn} has replaced it with the stored one, and
 * *lost* if the stored one could not be read.
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import { Deadlines } from '../../proto/deadlines.js';
import { LockgateError } from '../../proto/errors.js';
import { type JudgeEvent, newVerdict, type UplinkKey, type Verdict } from '../../proto/power/judge/event.js';
import { type Presence, presence } from '../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import { NO_MARKS } from '../../proto/wire/uplink-life.js';
import type { StateRebuilt } from '../events.js';
import { CURRENT_JUDGE, JudgeFailure, type JudgingStop, messageOf, type VersionedJudge } from '../ingest/judging.js';
import type { PendingUplink } from '../ingest/pending-uplink.js';
import type { Judged } from '../store/contract/log/commit.js';
import type { Store } from '../store/contract/store.js';
import { type DeviceState, isNewest, newDeviceState, noteUplink } from './device-state.js';
import { DirtyStates } from './dirty-states.js';
import { replayState } from './log-replay.js';
import { type LoadedState, loadStates } from './rebuild-state.js';

/** The maximum delay of the timer for ticks: a change of the machine's clock is noticed within this time. */
const MAX_TICK_DELAY = Seconds(60);

/** A lock in memory. */
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

/** The judging of a lock stopped, or resumed if `unjudged` is undefined. */
export interface JudgingChange {
  readonly lock: KnownLock;
  readonly unjudged: JudgingStop | undefined;
}

/** A repaired state of a lock that must be stored, with the findings of judging the log again. */
interface RepairedLock {
  readonly lock: KnownLock;
  readonly state: DeviceState;
  readonly judged: readonly Judged[];
}

type NewUplink = Pick<PendingUplink, 'credentialId' | 'uplink' | 'receivedAtMs' | 'life'>;

const NO_CHANGES: readonly JudgingChange[] = Object.freeze([]);
const NEVER_SEEN: Presence = Object.freeze({ presence: 'never-seen' });

/** The verdict on an event that breaks no rule. */
const EMPTY_VERDICT: Verdict = Object.freeze({ withdrawn: [], findings: [] });

export class Locks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onDue: (locks: readonly KnownLock[]) => void;
  readonly #locks = new Map<number, KnownLock>();
  /** The locks by the due time of their next tick. */
  readonly #deadlines = new Deadlines<KnownLock>();
  readonly #listeningSinceMs: number;
  /** The reflash marks of the locks that have any, by device id. */
  readonly #marks = new Map<number, readonly number[]>();
  readonly #dirty = new DirtyStates<KnownLock>();
  readonly #judging: VersionedJudge;
  /** The locks that wait for {@link repairTorn}. */
  readonly #torn = new Set<KnownLock>();
  readonly #judgingChanges: JudgingChange[] = [];
  /** Filled by the judge. An empty one is reused for the next event. */
  #verdict = newVerdict();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /** @param clock the run's clock. @param onDue called with locks whose tick is due */
  constructor(
    store: Store,
    clock: Clock,
    onDue: (locks: readonly KnownLock[]) => void,
    judging: VersionedJudge = CURRENT_JUDGE,
  ) {
    this.#judging = judging;
    this.#store = store;
    this.#clock = clock;
    this.#onDue = onDue;
    this.#listeningSinceMs = clock.now();
  }

  /**
   * Loads all states from the store. Must be called before any other method. A state that can't be read must not
   * prevent the start: it is rebuilt, and returned so that the caller can report it.
   */
  async load(): Promise<readonly StateRebuilt[]> {
    const rebuilt: StateRebuilt[] = [];
    const atMs = this.#clock.now();
    for (const [deviceId, marks] of await this.#store.marks.readAll()) this.#marks.set(deviceId, marks);
    for (const loaded of (await this.#loadStates(atMs)).values()) {
      const { deviceId, mac, state, isReplayed, rebuilt: rebuild } = loaded;
      // The presence at the start is not announced.
      const lock = this.#add(deviceId, mac, state, true);
      if (isReplayed) this.#dirty.add(lock);
      if (rebuild !== undefined) rebuilt.push({ atMs, mac, ...rebuild });
      // Only if the judge failed in this very load: an earlier stop was announced when it happened.
      if (state.unjudged?.sinceMs === atMs) this.#judgingChanges.push({ lock, unjudged: state.unjudged });
    }
    return rebuilt;
  }

  /**
   * Loads the states of locks that this gateway serves from now on. Must be called while no commit is being written.
   *
   * @throws StoreFailure
   */
  async adopt(deviceIds: readonly number[]): Promise<void> {
    const marks = await this.#store.marks.readAll();
    const loaded = await this.#loadStates(this.#clock.now(), deviceIds);
    for (const deviceId of deviceIds) {
      this.mark(deviceId, marks.get(deviceId) ?? NO_MARKS);
      const stored = loaded.get(deviceId);
      if (stored === undefined) continue;
      // What this gateway knew of the lock from an earlier time is out of date.
      this.replace(deviceId, null);
      const lock = this.#add(deviceId, stored.mac, stored.state, true);
      if (stored.isReplayed) this.#dirty.add(lock);
    }
  }

  /** The judge in use. */
  get judging(): VersionedJudge {
    return this.#judging;
  }

  /** Every known lock. */
  all(): Iterable<KnownLock> {
    return this.#locks.values();
  }

  find(deviceId: number): KnownLock | undefined {
    return this.#locks.get(deviceId);
  }

  /** The lock, added if it is new. @param atMs time of the event for which the lock is looked up */
  known(deviceId: number, mac: Mac, atMs = this.#clock.now()): KnownLock {
    return (
      this.#locks.get(deviceId) ?? this.#add(deviceId, mac, newDeviceState(mac, atMs, this.#listeningSinceMs), false)
    );
  }

  /**
   * A lock whose state another gateway has, to judge a phone's uplink, which rests on no state. It is not remembered.
   */
  guest(deviceId: number, mac: Mac, atMs: number): KnownLock {
    const guest = this.#makeLock(deviceId, mac, newDeviceState(mac, atMs, this.#listeningSinceMs), false);
    // As in the belief, so that `judge` sets no deadline: a guest gets no ticks.
    guest.dueMs = guest.state.belief.dueMs;
    return guest;
  }

  /**
   * Judges one event of a lock. Afterwards the caller must store the resulting state; or log the event and {@link
   * markDirty mark the lock dirty}; or call {@link reload}. Never throws: if the judge throws, the judging of the lock
   * stops.
   */
  judge(lock: KnownLock, event: JudgeEvent): Verdict {
    if (lock.state.unjudged !== undefined) return this.#countUnjudged(lock);
    const verdict = this.#verdict;
    const { belief } = lock.state;
    try {
      this.#judging.judge(POWER_MODEL, belief, event, verdict);
    } catch (error) {
      this.#verdict = newVerdict();
      this.stopJudging(lock, messageOf(error), event.atMs);
      return this.#countUnjudged(lock);
    }
    if (belief.dueMs !== lock.dueMs) this.#deadlines.set(lock, belief.dueMs);
    if (verdict.findings.length === 0 && verdict.withdrawn.length === 0) return EMPTY_VERDICT;
    this.#verdict = newVerdict();
    return verdict;
  }

  #countUnjudged(lock: KnownLock): Verdict {
    lock.unjudgedEvents += 1;
    return EMPTY_VERDICT;
  }

  /** Notes a new uplink of the lock itself, not of a phone. */
  noteUplink(lock: KnownLock, { credentialId, uplink, receivedAtMs, life }: NewUplink): void {
    this.#guardLock(lock, () => noteUplink(lock.state, credentialId, uplink, receivedAtMs, life));
  }

  /** Whether an uplink's key was certainly never used before; false if it must be looked up. */
  isNewest(lock: KnownLock, source: Source, key: UplinkKey): boolean {
    // The state of a lock that is not judged lacks the uplinks since its judging stopped.
    if (lock.state.unjudged !== undefined) return false;
    return this.#guardLock(lock, () => isNewest(lock.state, source, key)) ?? false;
  }

  /** Runs `work`, which uses the lock's state; if it throws, the judging of the lock stops. */
  #guardLock<T>(lock: KnownLock, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.stopJudging(lock, messageOf(error));
      return undefined;
    }
  }

  /**
   * Stops the judging of the lock. Its state waits for {@link repairTorn}. `sinceMs`: the time of the event that could
   * not be judged, by the run's clock.
   */
  stopJudging(lock: KnownLock, why: string, sinceMs = this.#clock.now()): void {
    if (lock.state.unjudged !== undefined) return;
    const unjudged = { sinceMs, why, version: this.#judging.version };
    lock.state.unjudged = unjudged;
    lock.isTorn = true;
    lock.dueMs = Number.POSITIVE_INFINITY;
    this.#dirty.delete(lock);
    this.#torn.add(lock);
    this.#judgingChanges.push({ lock, unjudged });
  }

  /** Notes that the stored state of a lock can't be read. The lock is judged again as soon as it can be read. */
  #stateLost(lock: KnownLock, error: Error): void {
    this.stopJudging(lock, `its stored state could not be read: ${messageOf(error)}`);
    // `stopJudging` does nothing for a lock that is not judged already; its state must be repaired all the same.
    lock.isLost = true;
    lock.isTorn = true;
    this.#torn.add(lock);
  }

  /** Whether the state of any lock waits for {@link repairTorn}. */
  get needsRepair(): boolean {
    return this.#torn.size > 0;
  }

  /** The locks whose judging stopped or resumed since the last call. */
  takeJudgingChanges(): readonly JudgingChange[] {
    if (this.#judgingChanges.length === 0) return NO_CHANGES;
    return this.#judgingChanges.splice(0);
  }

  /** The locks that are not judged. */
  *unjudged(): Iterable<{ readonly lock: KnownLock; readonly unjudged: JudgingStop }> {
    for (const lock of this.#locks.values()) {
      const { unjudged } = lock.state;
      if (unjudged !== undefined) yield { lock, unjudged };
    }
  }

  /**
   * Repairs the torn states, which the judge may have left half changed when it threw. Each is replaced by the stored
   * state, which is then stored with a mark that the lock is not judged. A lost state, which could not be read, is
   * restored, and the events since then are judged. Must be called while no commit is being written and nothing is
   * being judged.
   *
   * @throws StoreFailure if the store can't be read or written; the caller must then try again
   */
  async repairTorn(): Promise<void> {
    const torn = [...this.#torn];
    const nowMs = this.#clock.now();
    const loaded = await this.#loadStates(
      nowMs,
      torn.map(({ deviceId }) => deviceId),
    );
    const repaired: RepairedLock[] = [];
    for (const lock of torn) {
      const stored = loaded.get(lock.deviceId)?.state ?? newDeviceState(lock.mac, nowMs, this.#listeningSinceMs);
      const { unjudged } = lock.state;
      if (lock.isLost && stored.unjudged === undefined)
        repaired.push(
          lock.unjudgedEvents === 0 ? { lock, state: stored, judged: [] } : await this.#replayOrMark(lock, stored),
        );
      else repaired.push({ lock, state: { ...stored, unjudged: unjudged ?? stored.unjudged }, judged: [] });
    }
    await this.#storeStates(repaired);
  }

  /** The lock's state replayed from the log; if the judge fails again, the stored state, marked as not judged. */
  async #replayOrMark(lock: KnownLock, stored: DeviceState): Promise<RepairedLock> {
    try {
      return await replayState(this.#store, this.#judging, lock);
    } catch (error) {
      if (!(error instanceof JudgeFailure)) throw error;
      return { lock, state: { ...stored, unjudged: lock.state.unjudged }, judged: [] };
    }
  }

  /**
   * Resumes the judging of a lock: replays its whole log, and stores the findings since the judging stopped. Must be
   * called under the same conditions as {@link repairTorn}.
   *
   * @throws LockgateError `lock-is-judged`, `judge-failed`
   */
  async rejudge(deviceId: number, mac: Mac): Promise<void> {
    const lock = this.#locks.get(deviceId);
    if (lock?.state.unjudged === undefined)
      throw new LockgateError('lock-is-judged', `${formatMac(mac)} is judged already`);
    try {
      await this.#storeStates([await replayState(this.#store, this.#judging, lock)]);
    } catch (error) {
      if (!(error instanceof JudgeFailure)) throw error;
      const why = messageOf(error.cause);
      throw new LockgateError('judge-failed', `${formatMac(mac)} is still not judged: the judge failed again: ${why}`);
    }
  }

  async #storeStates(repaired: readonly RepairedLock[]): Promise<void> {
    if (repaired.length === 0) return;
    const states = new Map(repaired.map(({ lock, state }) => [lock.deviceId, JSON.stringify(state)]));
    await this.#store.append({ incoming: [], judged: repaired.flatMap(({ judged }) => judged), states });
    for (const { lock, state } of repaired) {
      // The lock was moved, erased or removed meanwhile.
      if (this.#locks.get(lock.deviceId) !== lock) continue;
      lock.isLost = false;
      this.replace(lock.deviceId, state);
    }
  }

  #loadStates(nowMs: number, deviceIds?: readonly number[]): Promise<ReadonlyMap<number, LoadedState>> {
    return loadStates({ store: this.#store, judging: this.#judging, nowMs }, deviceIds);
  }

  /** Notes that the stored state lacks the event that was just judged, but the log has it. */
  markDirty(lock: KnownLock): void {
    this.#dirty.add(lock);
  }

  /** The lock's state as JSON if the stored one is older; otherwise undefined. */
  newerState(deviceId: number): string | undefined {
    const lock = this.#locks.get(deviceId);
    return lock !== undefined && !lock.isTorn && this.#dirty.has(lock) ? JSON.stringify(lock.state) : undefined;
  }

  /**
   * The locks whose dirty states, newer than the stored ones, the next commit must write.
   *
   * @param uplinkCount number of uplinks in the commit
   */
  takeDirty(uplinkCount: number): readonly KnownLock[] {
    return this.#dirty.nextBatch(uplinkCount).filter(({ isTorn }) => !isTorn);
  }

  /** Must be called when a commit with the current states of these locks has been sent to the store. */
  commitSent(written: readonly KnownLock[]): void {
    this.#dirty.flushStarted(written);
  }

  /** Must be called when that commit is on disk, with its number of uplinks and the same locks. */
  commitDone(uplinkCount: number, written: readonly KnownLock[]): void {
    this.#dirty.flushed(uplinkCount);
    for (const lock of written) lock.isStored = true;
  }

  /**
   * Replaces the states of these locks by the stored ones, after a commit failed. Must be called while no commit is
   * being written.
   *
   * @throws StoreFailure if the store can't be read; the locks are then not judged until {@link repairTorn} succeeds
   */
  async reload(locks: ReadonlySet<KnownLock>): Promise<void> {
    this.#dirty.flushFailed();
    if (locks.size === 0) return;
    const nowMs = this.#clock.now();
    let loaded: ReadonlyMap<number, LoadedState>;
    try {
      loaded = await this.#loadStates(
        nowMs,
        [...locks].map(({ deviceId }) => deviceId),
      );
    } catch (error) {
      for (const lock of locks) this.#stateLost(lock, error as Error);
      throw error;
    }
    for (const lock of locks) {
      // A lock that was lost before is repaired separately.
      if (lock.isLost) continue;
      const state = loaded.get(lock.deviceId)?.state;
      this.#setState(lock, state ?? newDeviceState(lock.mac, nowMs, this.#listeningSinceMs));
    }
  }

  /** Sets all reflash marks of a lock. The caller has stored them. */
  mark(deviceId: number, marks: readonly number[]): void {
    this.#marks.set(deviceId, marks);
    const lock = this.#locks.get(deviceId);
    if (lock !== undefined) lock.marks = marks;
  }

  readonly #marksOf = (deviceId: number): readonly number[] => this.#marks.get(deviceId) ?? NO_MARKS;

  /** Replaces the state of a lock by one that the caller has stored; null drops the lock. */
  replace(deviceId: number, state: DeviceState | null): void {
    const lock = this.#locks.get(deviceId);
    if (lock === undefined) return;
    this.#dirty.delete(lock);
    if (state === null) {
      if (lock.state.unjudged !== undefined) this.#judgingChanges.push({ lock, unjudged: undefined });
      this.#torn.delete(lock);
      this.#locks.delete(deviceId);
      // The heap of deadlines ignores an entry whose time differs from the lock's due time.
      lock.dueMs = Number.POSITIVE_INFINITY;
      return;
    }
    lock.isStored = true;
    this.#setState(lock, state);
  }

  /** Sets a state that is stored, or that the log reproduces. */
  #setState(lock: KnownLock, state: DeviceState): void {
    const [unjudgedBefore, unjudged] = [lock.state.unjudged, state.unjudged];
    lock.state = state;
    lock.isTorn = false;
    lock.unjudgedEvents = 0;
    this.#torn.delete(lock);
    if (unjudgedBefore?.sinceMs !== unjudged?.sinceMs) this.#judgingChanges.push({ lock, unjudged });
    this.#scheduleDue(lock);
  }

  #scheduleDue(lock: KnownLock): void {
    // A lock that is not judged gets no ticks: the heap of deadlines ignores its entry.
    if (lock.state.unjudged !== undefined) lock.dueMs = Number.POSITIVE_INFINITY;
    else this.#deadlines.set(lock, lock.state.belief.dueMs);
  }

  /** The lock's current presence, if it may differ from the announced one; otherwise undefined. */
  presenceNow(lock: KnownLock): Presence | undefined {
    const { belief, unjudged } = lock.state;
    if (unjudged !== undefined) return undefined;
    const before = lock.presence;
    // The usual case: the lock was online before and still is, over the same connection.
    if (before.presence === 'online' && belief.isConnected && before.sinceMs === belief.connectedSinceMs)
      return undefined;
    return this.#guardLock(lock, () => presence(POWER_MODEL, belief, this.#clock.now()));
  }

  /**
   * Sets the announced presence. Returns whether it changed. Must be called after the commit that caused the presence.
   */
  reportPresence(lock: KnownLock, now: Presence): boolean {
    const before = lock.presence;
    lock.presence = now;
    return now.presence !== before.presence || (now.presence === 'late' && now.rule !== (before as typeof now).rule);
  }

  /** Sets the timer for the next tick. Must be called after events were judged. */
  scheduleTick(): void {
    const dueMs = this.#deadlines.firstMs;
    if (dueMs === this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    if (dueMs === Number.POSITIVE_INFINITY) return;
    // A deadline has passed only after its due time, not at it.
    const delay = Math.min(Math.max(dueMs - this.#clock.now() + 1, 1), MAX_TICK_DELAY);
    this.#timer = this.#clock.after(delay, () => this.#wake());
  }

  /** Stops requesting ticks. */
  stop(): void {
    this.#timer?.cancel();
  }

  #wake(): void {
    // Equals no time, so that the timer is set again in any case.
    this.#timerDueMs = Number.NaN;
    const due: KnownLock[] = [];
    for (let lock = this.#takeDue(); lock !== undefined; lock = this.#takeDue()) due.push(lock);
    if (due.length > 0) this.#onDue(due);
    this.scheduleTick();
  }

  /** Removes and returns a lock whose tick is due; undefined if there is none. */
  #takeDue(): KnownLock | undefined {
    return this.#deadlines.take(this.#clock.now());
  }

  #makeLock(deviceId: number, mac: Mac, state: DeviceState, isStored: boolean): KnownLock {
    return {
      deviceId,
      mac,
      state,
      marks: this.#marksOf(deviceId),
      presence: NEVER_SEEN,
      dueMs: Number.POSITIVE_INFINITY,
      isStored,
      lastDraftNumber: 0,
      isTorn: false,
      isLost: false,
      unjudgedEvents: 0,
    };
  }

  #add(deviceId: number, mac: Mac, state: DeviceState, isStored: boolean): KnownLock {
    const lock = this.#makeLock(deviceId, mac, state, isStored);
    this.#locks.set(deviceId, lock);
    this.#scheduleDue(lock);
    lock.presence = this.#guardLock(lock, () => presence(POWER_MODEL, state.belief, this.#clock.now())) ?? NEVER_SEEN;
    return lock;
  }
}
