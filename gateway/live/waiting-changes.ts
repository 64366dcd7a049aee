/**
 * The locks that changed since they were last sent, and which of them are sent next. A lock is sent at most once in
 * {@link CHANGE_INTERVAL}. Locks that changed in more than their position come first, and all of them: those stolen,
 * silent, unlocked, renamed. Of those that only moved or pinged, each merchant's streams get
 * {@link MAX_MOVES_PER_FLUSH} at a time, in turn: a reader can't follow more, and each costs time that pings need.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import { presence } from '../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { DeviceState } from '../locks/device-state.js';
import type { LockStates } from '../locks/list/listed-lock.js';
import { isStolen } from '../locks/list/lock-filter.js';

/** A lock is sent at most once in this time. */
export const CHANGE_INTERVAL: Milliseconds = Seconds(1);
/** How long changes are collected before they are read. */
export const FLUSH_DELAY: Milliseconds = 200;
/** How many locks of a merchant that only moved or pinged are sent in one flush: 250 in a second. */
export const MAX_MOVES_PER_FLUSH = 50;

/** A lock as it was last sent, or first shown in a snapshot. */
interface SentLock {
  /** The merchant that had it. */
  readonly merchantId: number;
  /** What pages showed of it with a badge or a colour, from {@link faceOf}. */
  readonly face: string;
  /** When it was sent as a change, by the clock of {@link WaitingChanges.take}; minus infinity if it was not yet. */
  readonly sentAtMs: number;
}

export class WaitingChanges {
  readonly #states: LockStates;
  /** The device ids of the locks that wait, in the order of their first change. */
  readonly #changed = new Set<number>();
  /** Those of them that changed in more than their states. */
  readonly #urgent = new Set<number>();
  /** By device id. */
  readonly #sent = new Map<number, SentLock>();

  constructor(states: LockStates) {
    this.#states = states;
  }

  /** The number of locks that wait. */
  get size(): number {
    return this.#changed.size;
  }

  /** Notes a change. @param isUrgent whether it must not wait for the turns of other locks */
  note(deviceId: number, isUrgent: boolean): void {
    this.#changed.add(deviceId);
    if (isUrgent) this.#urgent.add(deviceId);
  }

  /**
   * The device ids of the locks that are to be sent now, urgent ones first. They no longer wait once {@link remove} was
   * called. Forgets the waiting locks of merchants without streams.
   *
   * @param nowMs of a clock that measures intervals @param runNowMs by the run's clock, by which locks are late
   * @param isWanted whether a merchant has streams
   */
  take(nowMs: number, runNowMs: number, isWanted: (merchantId: number) => boolean): number[] {
    const [urgent, moves]: [number[], number[]] = [[], []];
    /** How many moves were taken, by merchant. */
    const taken = new Map<number, number>();
    for (const deviceId of this.#changed) {
      const sent = this.#sent.get(deviceId);
      if (sent === undefined) urgent.push(deviceId);
      else if (!isWanted(sent.merchantId)) this.remove(deviceId);
      else if (!isDue(sent, nowMs)) continue;
      else if (this.#urgent.has(deviceId) || sent.face !== this.#faceOf(deviceId, runNowMs)) urgent.push(deviceId);
      else {
        const count = taken.get(sent.merchantId) ?? 0;
        if (count === MAX_MOVES_PER_FLUSH) continue;
        taken.set(sent.merchantId, count + 1);
        moves.push(deviceId);
      }
    }
    return [...urgent, ...moves];
  }

  /**
   * Notes what a snapshot shows of a lock, so that its first change is not urgent if it only moves: else all locks of a
   * fleet would be sent at once when the first page opens. What was sent of a lock already counts for all streams. A
   * lock that waits is left as it is, since other streams have not got its change.
   */
  noteShown(deviceId: number, merchantId: number, runNowMs: number): void {
    if (this.#sent.has(deviceId) || this.#changed.has(deviceId)) return;
    // It may be sent right away: the snapshot does not count as a change.
    this.noteSent(deviceId, merchantId, Number.NEGATIVE_INFINITY, runNowMs);
  }

  /** A lock no longer waits. */
  remove(deviceId: number): void {
    this.#changed.delete(deviceId);
    this.#urgent.delete(deviceId);
  }

  /** Notes that a lock was read; `sentAtMs` is its time by the clock of {@link take}. */
  noteSent(deviceId: number, merchantId: number, sentAtMs: number, runNowMs: number): void {
    this.#sent.set(deviceId, { merchantId, face: this.#faceOf(deviceId, runNowMs), sentAtMs });
  }

  /** Forgets when a lock was sent: it is urgent when it changes again. */
  forget(deviceId: number): void {
    this.#sent.delete(deviceId);
  }

  #faceOf(deviceId: number, runNowMs: number): string {
    const state = this.#states.find(deviceId)?.state;
    return state === undefined ? '' : faceOf(state, runNowMs);
  }
}

/** A time in the future comes from a clock that was set back. */
function isDue({ sentAtMs }: SentLock, nowMs: number): boolean {
  return nowMs - sentAtMs >= CHANGE_INTERVAL || sentAtMs > nowMs;
}

/** What pages show of a lock with a badge or a colour: all that must not wait. */
function faceOf(state: DeviceState, runNowMs: number): string {
  const { belief, unjudged } = state;
  const { presence: now } = presence(POWER_MODEL, belief, unjudged?.sinceMs ?? runNowMs);
  return `${isStolen(state)} ${now} ${belief.state} ${belief.lockState} ${unjudged !== undefined}`;
}
