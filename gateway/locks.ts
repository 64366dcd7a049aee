/**
 * All locks that were ever heard of, and what is known of each: kept in memory, stored with every commit.
 *
 * Time passes for a lock without a ping too, so each has a time at which something may fall due (`judge` says when),
 * and a tick is asked for then.
 */
import { type Clock, Seconds, type Timer } from '../proto/clock.js';
import { Deadlines } from '../proto/deadlines.js';
import type { Mac } from '../proto/mac.js';
import { judgeInPlace } from '../proto/power-judge.js';
import { type JudgeEvent, newVerdict } from '../proto/power-judge-event.js';
import { type Presence, presence } from '../proto/power-judge-presence.js';
import { POWER_MODEL } from '../proto/power-model.js';
import { type DeviceState, newDeviceState, parseDeviceState, readDeviceState } from './device-state.js';
import type { StateRebuilt } from './events.js';
import { rebuildState } from './rebuild-state.js';
import type { Judged, Store } from './store/store.js';

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
}

export class Locks {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #onDue: (locks: readonly KnownLock[]) => void;
  readonly #locks = new Map<number, KnownLock>();
  readonly #deadlines = new Deadlines<KnownLock>();
  readonly #listeningSinceMs: number;
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
    for (const { deviceId, mac, state: json } of await this.#store.readDeviceStates()) {
      const read = readDeviceState(json);
      if (read.ok) {
        this.#add(deviceId, mac, read.value);
        continue;
      }
      const atMs = this.#clock.now();
      const { state, from } = await rebuildState(this.#store, deviceId, mac, atMs);
      this.#add(deviceId, mac, state);
      rebuilt.push({ atMs, mac, why: read.error.message, from });
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
    return this.#locks.get(deviceId) ?? this.#add(deviceId, mac, newDeviceState(mac, atMs, this.#listeningSinceMs));
  }

  /** Judges one event of a lock. The state it leads to is to be stored, or else {@link reload} be called. */
  judge(lock: KnownLock, event: JudgeEvent): Judged {
    const verdict = newVerdict();
    const { belief } = lock.state;
    judgeInPlace(POWER_MODEL, belief, event, verdict);
    if (belief.dueMs !== lock.dueMs) this.#deadlines.set(lock, belief.dueMs);
    return { deviceId: lock.deviceId, ...verdict };
  }

  /** Forgets what was not stored. */
  async reload(lock: KnownLock): Promise<void> {
    const stored = await this.#store.readDeviceState(lock.deviceId);
    const { mac } = lock;
    lock.state =
      stored === null ? newDeviceState(mac, this.#clock.now(), this.#listeningSinceMs) : parseDeviceState(stored);
    this.#deadlines.set(lock, lock.state.belief.dueMs);
  }

  /** From now on this is what is known of the lock; null drops it. It has been stored. */
  replace(deviceId: number, state: DeviceState | null): void {
    const lock = this.#locks.get(deviceId);
    if (lock === undefined) return;
    if (state === null) {
      this.#locks.delete(deviceId);
      // An entry that the heap has for it passes without a tick.
      lock.dueMs = Number.POSITIVE_INFINITY;
      return;
    }
    lock.state = state;
    this.#deadlines.set(lock, state.belief.dueMs);
  }

  /** The lock's presence, where it changed since this was last asked. */
  newPresence(lock: KnownLock): Presence | undefined {
    const now = presence(POWER_MODEL, lock.state.belief, this.#clock.now());
    const before = lock.presence;
    lock.presence = now;
    const isSame =
      now.presence === before.presence && (now.presence !== 'late' || now.rule === (before as typeof now).rule);
    return isSame ? undefined : now;
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

  #add(deviceId: number, mac: Mac, state: DeviceState): KnownLock {
    const now = presence(POWER_MODEL, state.belief, this.#clock.now());
    const lock: KnownLock = { deviceId, mac, state, presence: now, dueMs: state.belief.dueMs };
    this.#locks.set(deviceId, lock);
    this.#deadlines.set(lock, lock.dueMs);
    return lock;
  }
}
