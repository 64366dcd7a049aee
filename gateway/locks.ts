/**
 * All locks that were ever heard of, and what is known of each: kept in memory, and stored so that memory and log
 * together always have it (unsettled-states.ts).
 *
 * Time passes for a lock without a ping too, so each has a time at which something may fall due (`judge` says when),
 * and a tick is asked for then.
 */
import { type Clock, Seconds, type Timer } from '../proto/clock.js';
import { Deadlines } from '../proto/deadlines.js';
import type { Mac } from '../proto/mac.js';
import { judgeInPlace } from '../proto/power-judge.js';
import { type JudgeEvent, newVerdict, type Verdict } from '../proto/power-judge-event.js';
import { type Presence, presence } from '../proto/power-judge-presence.js';
import { POWER_MODEL } from '../proto/power-model.js';
import { type DeviceState, newDeviceState, parseDeviceState, readDeviceState } from './device-state.js';
import type { StateRebuilt } from './events.js';
import { rebuildState, replayTail } from './rebuild-state.js';
import type { Store } from './store/store.js';
import { UnsettledStates } from './unsettled-states.js';

/** The longest sleep of the timer for ticks: a clock that somebody sets is noticed within it. */
const LONGEST_SLEEP = Seconds(60);

/** A lock in memory. */
export interface KnownLock {
  readonly deviceId: number;
  readonly mac: Mac;
  state: DeviceState;
  /** What was last told of its presence. */
  presence: Presence;
  /** When something may fall due for it, ms since the epoch, by the run's clock. */
  dueMs: number;
  /** Whether the store has a state of it, be it an old one. */
  isStored: boolean;
  /** The last commit draft that touched it (commit-draft.ts). */
  touchedBy: number;
}

/** What is read of a state whose row does not fit its checksum. */
const DAMAGED_STATE = Object.freeze({
  ok: false as const,
  error: { message: 'the stored state does not fit its checksum' },
});

/** What an event that broke no rule brought. */
const NOTHING_FOUND: Verdict = Object.freeze({ withdrawn: [], findings: [] });

export class Locks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onDue: (locks: readonly KnownLock[]) => void;
  readonly #locks = new Map<number, KnownLock>();
  readonly #deadlines = new Deadlines<KnownLock>();
  readonly #listeningSinceMs: number;
  readonly #unsettled = new UnsettledStates<KnownLock>();
  #verdict = newVerdict();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  /** `clock` is the run's clock; `onDue` is told of locks for which a tick is to be judged. */
  constructor(store: Store, clock: Clock, onDue: (locks: readonly KnownLock[]) => void) {
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
    const fromStates = new Map<number, KnownLock>();
    for (const { deviceId, mac, state: json, isDamaged } of await this.#store.readDeviceStates()) {
      const read = isDamaged === true ? DAMAGED_STATE : readDeviceState(json);
      if (read.ok) {
        fromStates.set(deviceId, this.#add(deviceId, mac, read.value, true));
        continue;
      }
      const { state, from } = await rebuildState(this.#store, deviceId, mac, atMs);
      this.#add(deviceId, mac, state, true);
      rebuilt.push({ atMs, mac, why: read.error.message, from });
    }
    const replayed = await replayTail(this.#store, (deviceId) => fromStates.get(deviceId)?.state);
    for (const { deviceId, why } of replayed) {
      const lock = fromStates.get(deviceId) as KnownLock;
      this.#unsettled.add(lock);
      this.#renewed(lock);
      // Nobody is told anew of what was told of already.
      lock.presence = presence(POWER_MODEL, lock.state.belief, atMs);
      if (why !== undefined) rebuilt.push({ atMs, mac: lock.mac, why, from: 'log' });
    }
    return rebuilt;
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
   * {@link unsettle unsettled}; or else {@link reload} be called.
   */
  judge(lock: KnownLock, event: JudgeEvent): Verdict {
    const verdict = this.#verdict;
    const { belief } = lock.state;
    judgeInPlace(POWER_MODEL, belief, event, verdict);
    if (belief.dueMs !== lock.dueMs) this.#deadlines.set(lock, belief.dueMs);
    if (verdict.findings.length === 0 && verdict.withdrawn.length === 0) return NOTHING_FOUND;
    this.#verdict = newVerdict();
    return verdict;
  }

  /** The lock's state need not be stored with what was just judged, which the log has. */
  unsettle(lock: KnownLock): void {
    this.#unsettled.add(lock);
  }

  /** JSON of what is known of the lock, where what is stored of it is older. */
  newerState(deviceId: number): string | undefined {
    const lock = this.#locks.get(deviceId);
    return lock !== undefined && this.#unsettled.has(lock) ? JSON.stringify(lock.state) : undefined;
  }

  /** Whose states are to go with a commit of so many uplinks, though nothing new need be stored of them. */
  slice(uplinks: number): readonly KnownLock[] {
    return this.#unsettled.slice(uplinks);
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

  /** Forgets what was not stored of these locks. To be called while no commit is on its way. */
  async reload(locks: Iterable<KnownLock>): Promise<void> {
    this.#unsettled.failed();
    const nowMs = this.#clock.now();
    const stored = new Map((await this.#store.readDeviceStates()).map(({ deviceId, state }) => [deviceId, state]));
    const states = new Map<number, DeviceState>();
    for (const { deviceId, mac } of locks) {
      const json = stored.get(deviceId);
      const isNew = json === undefined;
      states.set(deviceId, isNew ? newDeviceState(mac, nowMs, this.#listeningSinceMs) : parseDeviceState(json));
    }
    await replayTail(this.#store, (deviceId) => states.get(deviceId));
    for (const lock of locks) {
      lock.state = states.get(lock.deviceId) as DeviceState;
      this.#renewed(lock);
    }
  }

  /** From now on this is what is known of the lock; null drops it. It has been stored. */
  replace(deviceId: number, state: DeviceState | null): void {
    const lock = this.#locks.get(deviceId);
    if (lock === undefined) return;
    this.#unsettled.delete(lock);
    if (state === null) {
      this.#locks.delete(deviceId);
      // An entry that the heap has for it passes without a tick.
      lock.dueMs = Number.POSITIVE_INFINITY;
      return;
    }
    lock.state = state;
    lock.isStored = true;
    this.#renewed(lock);
  }

  #renewed(lock: KnownLock): void {
    this.#deadlines.set(lock, lock.state.belief.dueMs);
  }

  /** The lock's presence as it is believed at this moment, where that may not be what was last told of it. */
  presenceNow(lock: KnownLock): Presence | undefined {
    const { belief } = lock.state;
    const before = lock.presence;
    // The usual case: it was online when it was last looked at, and still is, over the same connection.
    if (before.presence === 'online' && belief.isConnected && before.sinceMs === belief.connectedSinceMs)
      return undefined;
    return presence(POWER_MODEL, belief, this.#clock.now());
  }

  /** What this presence rests on is stored, and it is told from now on. Whether it is news. */
  tellPresence(lock: KnownLock, now: Presence): boolean {
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
    const now = presence(POWER_MODEL, state.belief, this.#clock.now());
    const lock = { deviceId, mac, state, presence: now, dueMs: state.belief.dueMs, isStored, touchedBy: 0 };
    this.#locks.set(deviceId, lock);
    this.#deadlines.set(lock, lock.dueMs);
    return lock;
  }
}
