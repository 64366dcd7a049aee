/**
 * Holds in memory all locks that have ever sent or done anything, with their states; of several gateways that share a
 * store, each has only the locks that it serves (ownership/), from the reading of their states on. A state has the
 * judge's belief: what the judge (proto/power/judge) has concluded about the lock. A stored state and the store's log
 * of uplinks together always reproduce the state in memory (dirty-states.ts).
 *
 * A lock is *judged*, or its judging has *stopped* because the judge threw (judging-stops.ts, which also says when its
 * state is *torn* or *lost*). lock-ticks.ts lets time pass for locks that send nothing.
 */
import type { Clock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type JudgeEvent, newVerdict, type UplinkKey, type Verdict } from '../../proto/power/judge/event.js';
import { type Presence, presence } from '../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import { NO_MARKS } from '../../proto/wire/uplink-life.js';
import { CURRENT_JUDGE, type JudgingStop, messageOf, type VersionedJudge } from '../ingest/judging.js';
import type { PendingUplink } from '../ingest/pending-uplink.js';
import type { StateRebuilt } from '../lock-events.js';
import type { Store } from '../store/contract/store.js';
import { type DeviceState, isNewest, newDeviceState, noteUplink } from './device-state.js';
import { DirtyStates } from './dirty-states.js';
import { type JudgingChange, JudgingStops, lostBecause } from './judging-stops.js';
import { type KnownLock, NEVER_SEEN, newKnownLock } from './known-lock.js';
import { LockTicks } from './lock-ticks.js';
import { type LoadedState, type LoadedStates, loadStates } from './rebuild-state.js';
import { StateRepair } from './state-repair.js';

export type { KnownLock } from './known-lock.js';

type NewUplink = Pick<PendingUplink, 'credentialId' | 'uplink' | 'receivedAtMs' | 'life'>;

/** The verdict on an event that breaks no rule. */
const EMPTY_VERDICT: Verdict = Object.freeze({ withdrawn: [], findings: [] });

export class Locks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #locks = new Map<number, KnownLock>();
  /**
   * The locks that this gateway has adopted, new ones without a state too; undefined if the store is not shared, so
   * that all locks are this gateway's.
   */
  readonly #adopted: Set<number> | undefined;
  readonly #ticks: LockTicks;
  /** Since when this gateway could have heard a lock, by the run's clock: an earlier silence says nothing. */
  readonly #listeningSinceMs: number;
  /** The reflash marks of the locks that have any, by device id. */
  readonly #marks = new Map<number, readonly number[]>();
  readonly #dirty = new DirtyStates<KnownLock>();
  readonly #judging: VersionedJudge;
  readonly #stops: JudgingStops;
  readonly #repair: StateRepair;
  /** Filled by the judge. An empty one is reused for the next event. */
  #verdict = newVerdict();

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
    this.#adopted = store.ownership.locks.isSole ? undefined : new Set();
    this.#ticks = new LockTicks(clock, onDue);
    this.#stops = new JudgingStops(judging.version);
    this.#repair = new StateRepair({
      store,
      judging,
      loadStates: async (deviceIds) => (await this.#loadStates(clock.now(), deviceIds)).states,
      newState: (mac) => this.#newState(mac, clock.now()),
      onRepaired: (lock, state) => this.#repaired(lock, state),
    });
    this.#listeningSinceMs = clock.now();
  }

  /**
   * Loads all states from the store. Must be called before any other method. A state that can't be read must not
   * prevent the start: it is rebuilt, and returned so that the caller can report it.
   */
  async load(): Promise<readonly StateRebuilt[]> {
    const rebuilt: StateRebuilt[] = [];
    const atMs = this.#clock.now();
    const stored = await this.#loadStates(atMs);
    for (const [deviceId, marks] of stored.marks) this.#marks.set(deviceId, marks);
    const lacking = new Map<KnownLock, number>();
    for (const { deviceId, mac, state, lackedUplinks, rebuilt: rebuild } of stored.states.values()) {
      // The presence at the start is not announced.
      const lock = this.#add(deviceId, mac, state, true);
      if (lackedUplinks !== undefined) lacking.set(lock, lackedUplinks);
      if (rebuild !== undefined) rebuilt.push({ atMs, mac, ...rebuild });
      // Only if the judge failed in this very load: an earlier stop was announced when it happened.
      if (state.unjudged?.sinceMs === atMs) this.#stops.stoppedInLoad(lock);
    }
    this.#dirty.addLoaded(lacking);
    return rebuilt;
  }

  /**
   * Reads the states of locks that this gateway has claimed, for {@link adopt}. Nobody changes them in between.
   *
   * @throws StoreFailure
   */
  async readStored(deviceIds: readonly number[]): Promise<LoadedStates> {
    return await this.#loadStates(this.#clock.now(), deviceIds);
  }

  /** Takes the states of locks that this gateway serves from now on. No commit may be under way. */
  adopt(deviceIds: Iterable<number>, { states, marks }: LoadedStates): void {
    const lacking = new Map<KnownLock, number>();
    for (const deviceId of deviceIds) {
      this.#adopted?.add(deviceId);
      this.mark(deviceId, marks.get(deviceId) ?? NO_MARKS);
      const stored = states.get(deviceId);
      if (stored === undefined) continue;
      // What this gateway knew of the lock from an earlier time is out of date.
      this.replace(deviceId, null);
      const lock = this.#add(deviceId, stored.mac, stored.state, true);
      if (stored.lackedUplinks !== undefined) lacking.set(lock, stored.lackedUplinks);
    }
    this.#dirty.addLoaded(lacking);
  }

  /** Forgets a lock, whose state is stored: another gateway serves it from now on. No commit may be under way. */
  disown(deviceId: number): void {
    this.replace(deviceId, null);
    this.#adopted?.delete(deviceId);
  }

  /**
   * Whether the lock's state is here, or the lock is new and would get its first state here. If several gateways share
   * the store, it is here from {@link adopt} to {@link disown}: not yet when the lock has only been claimed. Nothing of
   * the lock may be judged before, since a new state would replace the stored one.
   */
  isHere(deviceId: number): boolean {
    return this.#adopted === undefined || this.#adopted.has(deviceId);
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

  /**
   * The lock, added if it is new. It must be here ({@link isHere}).
   *
   * @param atMs time of the event for which the lock is looked up
   */
  known(deviceId: number, mac: Mac, atMs = this.#clock.now()): KnownLock {
    return this.#locks.get(deviceId) ?? this.#add(deviceId, mac, this.#newState(mac, atMs), false);
  }

  /**
   * A lock whose state is not here, to judge a phone's uplink, which rests on no state. It is not remembered.
   */
  guest(deviceId: number, mac: Mac, atMs: number): KnownLock {
    const state = this.#newState(mac, atMs);
    const guest = newKnownLock({ deviceId, mac, state, marks: this.#marksOf(deviceId) }, false);
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
    if (belief.dueMs !== lock.dueMs) this.#ticks.setDue(lock, belief.dueMs);
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
    this.#dirty.delete(lock);
    this.#ticks.clearDue(lock);
    this.#stops.stopped(lock, why, sinceMs);
  }

  /** Whether the state of any lock waits for {@link repairTorn}. */
  get needsRepair(): boolean {
    return this.#stops.torn.size > 0;
  }

  /** The locks whose judging stopped or resumed since the last call. */
  takeJudgingChanges(): readonly JudgingChange[] {
    return this.#stops.takeChanges();
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
    await this.#repair.repair([...this.#stops.torn]);
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
    await this.#repair.rejudge(lock);
  }

  #repaired(lock: KnownLock, state: DeviceState): void {
    // The lock was moved, erased or removed meanwhile.
    if (this.#locks.get(lock.deviceId) !== lock) return;
    this.replace(lock.deviceId, state);
  }

  /** The state of a lock of which nothing is stored. */
  #newState(mac: Mac, atMs: number): DeviceState {
    return newDeviceState(mac, atMs, this.#listeningSinceMs);
  }

  #loadStates(nowMs: number, deviceIds?: readonly number[]): Promise<LoadedStates> {
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
      const deviceIds = [...locks].map(({ deviceId }) => deviceId);
      loaded = (await this.#loadStates(nowMs, deviceIds)).states;
    } catch (error) {
      for (const lock of locks) {
        // Does nothing for a lock whose judging had stopped before; its state must be repaired all the same.
        this.stopJudging(lock, lostBecause(error as Error));
        this.#stops.lost(lock);
      }
      throw error;
    }
    for (const lock of locks) {
      // A lock that was lost before is repaired separately.
      if (lock.isLost) continue;
      const state = loaded.get(lock.deviceId)?.state;
      this.#setState(lock, state ?? this.#newState(lock.mac, nowMs));
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
      this.#stops.forget(lock);
      this.#locks.delete(deviceId);
      this.#ticks.clearDue(lock);
      return;
    }
    lock.isStored = true;
    this.#setState(lock, state);
  }

  /** Sets a state that is stored, or that the log reproduces. */
  #setState(lock: KnownLock, state: DeviceState): void {
    const before = lock.state.unjudged;
    lock.state = state;
    this.#stops.stateReplaced(lock, before);
    this.#scheduleDue(lock);
  }

  #scheduleDue(lock: KnownLock): void {
    // A lock that is not judged gets no ticks.
    if (lock.state.unjudged !== undefined) this.#ticks.clearDue(lock);
    else this.#ticks.setDue(lock, lock.state.belief.dueMs);
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
    // `late` is announced again for another rule; in this comparison both presences are `late`, and have a rule.
    return now.presence !== before.presence || (now.presence === 'late' && now.rule !== (before as typeof now).rule);
  }

  /** Sets the timer for the next tick. Must be called after events were judged. */
  scheduleTick(): void {
    this.#ticks.schedule();
  }

  /** Stops requesting ticks. */
  stop(): void {
    this.#ticks.stop();
  }

  /** @param isStored whether the store has a state of the lock */
  #add(deviceId: number, mac: Mac, state: DeviceState, isStored: boolean): KnownLock {
    const lock = newKnownLock({ deviceId, mac, state, marks: this.#marksOf(deviceId) }, isStored);
    this.#locks.set(deviceId, lock);
    this.#scheduleDue(lock);
    lock.presence = this.#guardLock(lock, () => presence(POWER_MODEL, state.belief, this.#clock.now())) ?? NEVER_SEEN;
    return lock;
  }
}
