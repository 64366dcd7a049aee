/**
 * All locks that were ever heard of, and what is known of each: kept in memory, and stored so that memory and log
 * together always have it (dirty-states.ts).
 *
 * Time passes for a lock without a ping too, so each has a time at which something may fall due (`judge` says when),
 * and a tick is asked for then.
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
import { JUDGING, JudgeFailure, type Judging, messageOf, type Unjudged } from '../ingest/judging.js';
import type { PendingUplink } from '../ingest/pending-uplink.js';
import type { Judged, Store } from '../store/contract/store.js';
import { type DeviceState, isNewest, newDeviceState, noteUplink } from './device-state.js';
import { DirtyStates } from './dirty-states.js';
import { remakeState } from './log-replay.js';
import { type LoadedState, loadStates } from './rebuild-state.js';

/** The longest sleep of the timer for ticks: a clock that somebody sets is noticed within it. */
const LONGEST_SLEEP = Seconds(60);

/** A lock in memory. */
export interface KnownLock {
  readonly deviceId: number;
  readonly mac: Mac;
  state: DeviceState;
  /** When it was reflashed (protocol.md §1), the earliest first. */
  marks: readonly number[];
  /** What was last told of its presence. */
  presence: Presence;
  /** When something may fall due for it, ms since the epoch, by the run's clock. */
  dueMs: number;
  /** Whether the store has a state of it, be it an old one. */
  isStored: boolean;
  /** The last commit draft that touched it (commit-draft.ts). */
  touchedBy: number;
  /** Its state in memory may be half written, or is not what the store has: it must not be stored. */
  isTorn: boolean;
  /** Its stored state could not be read back; it is judged again as soon as it is. */
  isLost: boolean;
  /** How many events of it were not judged since it isn't. */
  missed: number;
}

/** A lock that is not judged any more; or, without a mark, is judged again. */
export interface TurnedLock {
  readonly lock: KnownLock;
  readonly unjudged: Unjudged | undefined;
}

/** A lock's state that the store is to have, and what was found of it. */
interface SettledLock {
  readonly lock: KnownLock;
  readonly state: DeviceState;
  readonly judged: readonly Judged[];
}

type NotedUplink = Pick<PendingUplink, 'credentialId' | 'uplink' | 'receivedAtMs' | 'life'>;

const NOBODY: readonly TurnedLock[] = Object.freeze([]);
const NEVER_SEEN: Presence = Object.freeze({ presence: 'never-seen' });

/** What an event that broke no rule brought. */
const NOTHING_FOUND: Verdict = Object.freeze({ withdrawn: [], findings: [] });

export class Locks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onDue: (locks: readonly KnownLock[]) => void;
  readonly #locks = new Map<number, KnownLock>();
  readonly #deadlines = new Deadlines<KnownLock>();
  readonly #listeningSinceMs: number;
  /** Of the locks that have some. */
  readonly #marks = new Map<number, readonly number[]>();
  readonly #unsettled = new DirtyStates<KnownLock>();
  readonly #judging: Judging;
  /** Their states in memory are not to be believed. */
  readonly #torn = new Set<KnownLock>();
  readonly #turned: TurnedLock[] = [];
  #verdict = newVerdict();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /** `clock` is the run's clock; `onDue` is told of locks for which a tick is to be judged. */
  constructor(store: Store, clock: Clock, onDue: (locks: readonly KnownLock[]) => void, judging: Judging = JUDGING) {
    this.#judging = judging;
    this.#store = store;
    this.#clock = clock;
    this.#onDue = onDue;
    this.#listeningSinceMs = clock.now();
  }

  /**
   * Reads what the store knows. To be called before anything else. A state that can't be read must not keep the other
   * locks from their gateway: it is made anew, and told of.
   */
  async load(): Promise<readonly StateRebuilt[]> {
    const rebuilt: StateRebuilt[] = [];
    const atMs = this.#clock.now();
    for (const [deviceId, marks] of await this.#store.marks.readAll()) this.#marks.set(deviceId, marks);
    for (const loaded of (await this.#loadStates(atMs)).values()) {
      const { deviceId, mac, state, isReplayed, rebuilt: made } = loaded;
      // Nobody is told anew of what was told of already.
      const lock = this.#add(deviceId, mac, state, true);
      if (isReplayed) this.#unsettled.add(lock);
      if (made !== undefined) rebuilt.push({ atMs, mac, ...made });
      if (state.unjudged?.sinceMs === atMs) this.#turned.push({ lock, unjudged: state.unjudged });
    }
    return rebuilt;
  }

  /** What judges. */
  get judging(): Judging {
    return this.#judging;
  }

  /** Every lock that was ever heard of. */
  all(): Iterable<KnownLock> {
    return this.#locks.values();
  }

  find(deviceId: number): KnownLock | undefined {
    return this.#locks.get(deviceId);
  }

  /** The lock, new where it was never heard of. `atMs`: when that happened for which it is looked up. */
  known(deviceId: number, mac: Mac, atMs = this.#clock.now()): KnownLock {
    return (
      this.#locks.get(deviceId) ?? this.#add(deviceId, mac, newDeviceState(mac, atMs, this.#listeningSinceMs), false)
    );
  }

  /**
   * Judges one event of a lock. The state it leads to is to be stored, or the event be in the log and the lock
   * {@link unsettle unsettled}; or else {@link reload} be called. It never throws: a lock of which the judge does is
   * not judged any more.
   */
  judge(lock: KnownLock, event: JudgeEvent): Verdict {
    if (lock.state.unjudged !== undefined) return this.#missed(lock);
    const verdict = this.#verdict;
    const { belief } = lock.state;
    try {
      this.#judging.judge(POWER_MODEL, belief, event, verdict);
    } catch (error) {
      this.#verdict = newVerdict();
      this.stopJudging(lock, messageOf(error), event.atMs);
      return this.#missed(lock);
    }
    if (belief.dueMs !== lock.dueMs) this.#deadlines.set(lock, belief.dueMs);
    if (verdict.findings.length === 0 && verdict.withdrawn.length === 0) return NOTHING_FOUND;
    this.#verdict = newVerdict();
    return verdict;
  }

  #missed(lock: KnownLock): Verdict {
    lock.missed += 1;
    return NOTHING_FOUND;
  }

  /** Notes that a new uplink of the lock's own came. */
  note(lock: KnownLock, { credentialId, uplink, receivedAtMs, life }: NotedUplink): void {
    this.#guard(lock, () => noteUplink(lock.state, credentialId, uplink, receivedAtMs, life));
  }

  /** Whether an uplink's name was certainly never used before; false where it has to be looked up. */
  isNewest(lock: KnownLock, source: Source, name: UplinkKey): boolean {
    // What is believed of one that isn't judged knows nothing of what came since.
    if (lock.state.unjudged !== undefined) return false;
    return this.#guard(lock, () => isNewest(lock.state, source, name)) ?? false;
  }

  /** Does something that rests on what is believed of a lock; where that throws, the lock is not judged any more. */
  #guard<T>(lock: KnownLock, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.stopJudging(lock, messageOf(error));
      return undefined;
    }
  }

  /**
   * From now on the lock is not judged. What is believed of it is to be {@link settle settled}. `sinceMs`: when that
   * came that could not be judged, by the run's clock.
   */
  stopJudging(lock: KnownLock, why: string, sinceMs = this.#clock.now()): void {
    if (lock.state.unjudged !== undefined) return;
    const unjudged = { sinceMs, why, version: this.#judging.version };
    lock.state.unjudged = unjudged;
    lock.isTorn = true;
    lock.dueMs = Number.POSITIVE_INFINITY;
    this.#unsettled.delete(lock);
    this.#torn.add(lock);
    this.#turned.push({ lock, unjudged });
  }

  /** What is stored of a lock can't be read: it is judged again as soon as it can. */
  #lose(lock: KnownLock, error: Error): void {
    this.stopJudging(lock, `its state could not be read back: ${messageOf(error)}`);
    lock.isLost = true;
    lock.isTorn = true;
    this.#torn.add(lock);
  }

  /** Whether some lock's state in memory is not to be believed, and waits for {@link settle}. */
  get hasTorn(): boolean {
    return this.#torn.size > 0;
  }

  /** Which locks are not judged any more, or judged again, since this was last asked. */
  takeTurned(): readonly TurnedLock[] {
    if (this.#turned.length === 0) return NOBODY;
    return this.#turned.splice(0);
  }

  /** The locks that are not judged. */
  *unjudged(): Iterable<{ readonly lock: KnownLock; readonly unjudged: Unjudged }> {
    for (const lock of this.#locks.values()) {
      const { unjudged } = lock.state;
      if (unjudged !== undefined) yield { lock, unjudged };
    }
  }

  /**
   * Gives locks that are not judged the state of before, which the judge may have left half written, and stores it with
   * its mark. Those that could not be read back are judged again, with what came meanwhile. To be called while no
   * commit is on its way, and nothing is judged.
   *
   * @throws StoreFailure where it can't be read or written, and then it is to be called again
   */
  async settle(): Promise<void> {
    const torn = [...this.#torn];
    const nowMs = this.#clock.now();
    const loaded = await this.#loadStates(
      nowMs,
      torn.map(({ deviceId }) => deviceId),
    );
    const settled: SettledLock[] = [];
    for (const lock of torn) {
      const known = loaded.get(lock.deviceId)?.state ?? newDeviceState(lock.mac, nowMs, this.#listeningSinceMs);
      const { unjudged } = lock.state;
      if (lock.isLost && known.unjudged === undefined)
        settled.push(lock.missed === 0 ? { lock, state: known, judged: [] } : await this.#remakeOr(lock, known));
      else settled.push({ lock, state: { ...known, unjudged: unjudged ?? known.unjudged }, judged: [] });
    }
    await this.#storeStates(settled);
  }

  /** The lock's state from the log; what is known with the mark where the judge fails at it. */
  async #remakeOr(lock: KnownLock, known: DeviceState): Promise<SettledLock> {
    try {
      return await remakeState(this.#store, this.#judging, lock);
    } catch (error) {
      if (!(error instanceof JudgeFailure)) throw error;
      return { lock, state: { ...known, unjudged: lock.state.unjudged }, judged: [] };
    }
  }

  /**
   * Judges a lock again that is not judged: its state is made from all that the log has of it, and what is found of the
   * time since is stored. To be called as {@link settle} is.
   *
   * @throws LockgateError `lock-is-judged`, `judge-failed`
   */
  async rejudge(deviceId: number, mac: Mac): Promise<void> {
    const lock = this.#locks.get(deviceId);
    if (lock?.state.unjudged === undefined)
      throw new LockgateError('lock-is-judged', `${formatMac(mac)} is judged: there is nothing to do`);
    try {
      await this.#storeStates([await remakeState(this.#store, this.#judging, lock)]);
    } catch (error) {
      if (!(error instanceof JudgeFailure)) throw error;
      const why = messageOf(error.cause);
      throw new LockgateError('judge-failed', `${formatMac(mac)} stays unjudged, since the judge failed again: ${why}`);
    }
  }

  async #storeStates(settled: readonly SettledLock[]): Promise<void> {
    if (settled.length === 0) return;
    const states = new Map(settled.map(({ lock, state }) => [lock.deviceId, JSON.stringify(state)]));
    await this.#store.append({ incoming: [], judged: settled.flatMap(({ judged }) => judged), states });
    for (const { lock, state } of settled) {
      // It was moved, erased or removed meanwhile.
      if (this.#locks.get(lock.deviceId) !== lock) continue;
      lock.isLost = false;
      this.replace(lock.deviceId, state);
    }
  }

  #loadStates(nowMs: number, deviceIds?: readonly number[]): Promise<ReadonlyMap<number, LoadedState>> {
    return loadStates({ store: this.#store, judging: this.#judging, nowMs }, deviceIds);
  }

  /** The lock's state need not be stored with what was just judged, which the log has. */
  unsettle(lock: KnownLock): void {
    this.#unsettled.add(lock);
  }

  /** JSON of what is known of the lock, where what is stored of it is older. */
  newerState(deviceId: number): string | undefined {
    const lock = this.#locks.get(deviceId);
    return lock !== undefined && !lock.isTorn && this.#unsettled.has(lock) ? JSON.stringify(lock.state) : undefined;
  }

  /** Whose states are to go with a commit of so many uplinks, though nothing new need be stored of them. */
  slice(uplinks: number): readonly KnownLock[] {
    return this.#unsettled.flushBatch(uplinks).filter(({ isTorn }) => !isTorn);
  }

  /** A commit is on its way to the disk, with the states of these locks as they are: it lacks what is judged later. */
  storing(settled: readonly KnownLock[]): void {
    this.#unsettled.begin(settled);
  }

  /** The commit was made: of so many uplinks, and with the states of these locks as they were when it set out. */
  stored(uplinks: number, settled: readonly KnownLock[]): void {
    this.#unsettled.stored(uplinks);
    for (const lock of settled) lock.isStored = true;
  }

  /**
   * Forgets what was not stored of these locks. To be called while no commit is on its way.
   *
   * @throws StoreFailure where the store can't be read; nothing of them is judged then until {@link settle} has read it
   */
  async reload(locks: ReadonlySet<KnownLock>): Promise<void> {
    this.#unsettled.failed();
    if (locks.size === 0) return;
    const nowMs = this.#clock.now();
    let loaded: ReadonlyMap<number, LoadedState>;
    try {
      loaded = await this.#loadStates(
        nowMs,
        [...locks].map(({ deviceId }) => deviceId),
      );
    } catch (error) {
      for (const lock of locks) this.#lose(lock, error as Error);
      throw error;
    }
    for (const lock of locks) {
      // What came of one that was lost before is not in its state: that is settled by itself.
      if (lock.isLost) continue;
      const state = loaded.get(lock.deviceId)?.state;
      this.#restate(lock, state ?? newDeviceState(lock.mac, nowMs, this.#listeningSinceMs));
    }
  }

  /** From now on these are all of the lock's marks. They have been stored. */
  mark(deviceId: number, marks: readonly number[]): void {
    this.#marks.set(deviceId, marks);
    const lock = this.#locks.get(deviceId);
    if (lock !== undefined) lock.marks = marks;
  }

  readonly #marksOf = (deviceId: number): readonly number[] => this.#marks.get(deviceId) ?? NO_MARKS;

  /** From now on this is what is known of the lock; null drops it. It has been stored. */
  replace(deviceId: number, state: DeviceState | null): void {
    const lock = this.#locks.get(deviceId);
    if (lock === undefined) return;
    this.#unsettled.delete(lock);
    if (state === null) {
      if (lock.state.unjudged !== undefined) this.#turned.push({ lock, unjudged: undefined });
      this.#torn.delete(lock);
      this.#locks.delete(deviceId);
      // An entry that the heap has for it passes without a tick.
      lock.dueMs = Number.POSITIVE_INFINITY;
      return;
    }
    lock.isStored = true;
    this.#restate(lock, state);
  }

  /** The lock has another state, which the store has or the log leads to. */
  #restate(lock: KnownLock, state: DeviceState): void {
    const [before, now] = [lock.state.unjudged, state.unjudged];
    lock.state = state;
    lock.isTorn = false;
    lock.missed = 0;
    this.#torn.delete(lock);
    if (before?.sinceMs !== now?.sinceMs) this.#turned.push({ lock, unjudged: now });
    this.#renewed(lock);
  }

  #renewed(lock: KnownLock): void {
    // Of a lock that isn't judged nothing falls due: an entry that the heap has for it passes without a tick.
    if (lock.state.unjudged !== undefined) lock.dueMs = Number.POSITIVE_INFINITY;
    else this.#deadlines.set(lock, lock.state.belief.dueMs);
  }

  /** The lock's presence as it is believed at this moment, where that may not be what was last told of it. */
  presenceNow(lock: KnownLock): Presence | undefined {
    const { belief, unjudged } = lock.state;
    if (unjudged !== undefined) return undefined;
    const before = lock.presence;
    // The usual case: it was online when it was last looked at, and still is, over the same connection.
    if (before.presence === 'online' && belief.isConnected && before.sinceMs === belief.connectedSinceMs)
      return undefined;
    return this.#guard(lock, () => presence(POWER_MODEL, belief, this.#clock.now()));
  }

  /** What this presence rests on is stored, and it is told from now on. Whether it is news. */
  reportPresence(lock: KnownLock, now: Presence): boolean {
    const before = lock.presence;
    lock.presence = now;
    return now.presence !== before.presence || (now.presence === 'late' && now.rule !== (before as typeof now).rule);
  }

  /** Sees to it that ticks are asked for when they are due. To be called after events were judged. */
  arm(): void {
    const dueMs = this.#deadlines.firstMs;
    if (dueMs === this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    if (dueMs === Number.POSITIVE_INFINITY) return;
    // A lapse begins after its time, not at it.
    const delay = Math.min(Math.max(dueMs - this.#clock.now() + 1, 1), LONGEST_SLEEP);
    this.#timer = this.#clock.after(delay, () => this.#wake());
  }

  /** Asks for no more ticks. */
  stop(): void {
    this.#timer?.cancel();
  }

  #wake(): void {
    this.#timerDueMs = Number.NaN;
    const due: KnownLock[] = [];
    for (let lock = this.#takeDue(); lock !== undefined; lock = this.#takeDue()) due.push(lock);
    if (due.length > 0) this.#onDue(due);
    this.arm();
  }

  #takeDue(): KnownLock | undefined {
    return this.#deadlines.take(this.#clock.now());
  }

  #add(deviceId: number, mac: Mac, state: DeviceState, isStored: boolean): KnownLock {
    const lock: KnownLock = {
      deviceId,
      mac,
      state,
      marks: this.#marksOf(deviceId),
      presence: NEVER_SEEN,
      dueMs: Number.POSITIVE_INFINITY,
      isStored,
      touchedBy: 0,
      isTorn: false,
      isLost: false,
      missed: 0,
    };
    this.#locks.set(deviceId, lock);
    this.#renewed(lock);
    lock.presence = this.#guard(lock, () => presence(POWER_MODEL, state.belief, this.#clock.now())) ?? NEVER_SEEN;
    return lock;
  }
}
