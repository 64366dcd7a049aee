/**
 * The parts of snapshots, each read and rendered once for all streams of an audience that want it within a second:
 * twenty pages that open together cost as much as one.
 */
import { type Clock, type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import { type LockStates, listedLock, statesOf } from '../locks/list/listed-lock.js';
import type { ReadTurns } from '../locks/list/read-turns.js';
import type { Device } from '../store/contract/devices/device.js';
import type { Store } from '../store/contract/store.js';
import type { Audience } from './audience.js';

/** How many locks of a snapshot are read and rendered in one turn: some milliseconds. */
const LOCKS_PER_PART = 100;
/** How long a part is shared. What changes meanwhile, streams send after the snapshot. */
const SHARED_FOR: Milliseconds = Seconds(1);
/** At most this many parts are shared, of some 70 KB each: those of 10,000 locks. Beyond it, the oldest is dropped. */
const MAX_SHARED_PARTS = 100;

export interface SnapshotReadParts {
  readonly store: Pick<Store, 'readDevices'>;
  /** The present states of locks, in memory. */
  readonly states: LockStates;
  /** The run's clock, by which locks are late. */
  readonly runClock: Clock;
  /** Measures intervals: real time. */
  readonly clock: Clock;
  /** Says when a part may be read: other work of the event loop, such as pings, runs in between. */
  readonly turns: ReadTurns;
}

/** The locks of a part, as one list of JSON objects. */
export interface SnapshotPart {
  /** The sequence of the last change before the part was read: later changes may be missing in it. */
  readonly sequence: number;
  readonly locksJson: string;
  readonly count: number;
  readonly isLast: boolean;
  /** After which lock the next part starts. */
  readonly lastMac: Mac | undefined;
}

interface SharedPart {
  readonly part: Promise<SnapshotPart>;
  readonly askedAtMs: number;
}

export class SnapshotParts {
  readonly #parts: SnapshotReadParts;
  readonly #lastSequence: () => number;
  readonly #onShown: (device: Device, runNowMs: number) => void;
  /** By audience and the MAC before the part; the oldest first. */
  readonly #shared = new Map<string, SharedPart>();
  #timer: Timer | undefined;

  /**
   * @param lastSequence the sequence of the last change
   * @param onShown called with each lock of a part when it is read, and the time that it is shown for
   */
  constructor(
    parts: SnapshotReadParts,
    lastSequence: () => number,
    onShown: (device: Device, runNowMs: number) => void,
  ) {
    this.#parts = parts;
    this.#lastSequence = lastSequence;
    this.#onShown = onShown;
  }

  /**
   * The part of an audience's locks after a MAC; the first one without a MAC.
   *
   * @param isFresh whether it must be read now
   */
  partAfter(audience: Audience, afterMac: Mac | undefined, isFresh: boolean): Promise<SnapshotPart> {
    if (isFresh) return this.#read(audience, afterMac);
    this.#removeOld();
    const key = `${audience.name} ${afterMac ?? ''}`;
    const known = this.#shared.get(key);
    if (known !== undefined) return known.part;
    const part = this.#read(audience, afterMac);
    this.#shared.set(key, { part, askedAtMs: this.#parts.clock.now() });
    // A part that could not be read is read again for the next stream.
    part.catch(() => this.#shared.delete(key));
    if (this.#shared.size > MAX_SHARED_PARTS) this.#removeOldest();
    this.#removeLater();
    return part;
  }

  /** Shares no part any longer. */
  stop(): void {
    this.#timer?.cancel();
    this.#shared.clear();
  }

  async #read({ merchantId, lockJson }: Audience, afterMac: Mac | undefined): Promise<SnapshotPart> {
    const { store, turns, states, runClock } = this.#parts;
    await turns.next();
    const sequence = this.#lastSequence();
    const devices = await store.readDevices({ merchantId, afterMac, limit: LOCKS_PER_PART });
    const present = await statesOf(states, devices);
    const nowMs = runClock.now();
    const locks = devices.map((device) => listedLock(device, present, nowMs));
    for (const device of devices) this.#onShown(device, nowMs);
    const isLast = devices.length < LOCKS_PER_PART;
    const locksJson = JSON.stringify(locks.map(lockJson));
    return { sequence, locksJson, count: devices.length, isLast, lastMac: devices.at(-1)?.mac };
  }

  #removeOld(): void {
    const nowMs = this.#parts.clock.now();
    for (const { askedAtMs } of this.#shared.values()) {
      if (nowMs - askedAtMs < SHARED_FOR && askedAtMs <= nowMs) return;
      this.#removeOldest();
    }
  }

  #removeOldest(): void {
    const [oldest] = this.#shared.keys();
    if (oldest !== undefined) this.#shared.delete(oldest);
  }

  /** Frees the memory of parts that nobody asks for any more. */
  #removeLater(): void {
    this.#timer ??= this.#parts.clock.after(SHARED_FOR, () => {
      this.#timer = undefined;
      this.#removeOld();
      if (this.#shared.size > 0) this.#removeLater();
    });
  }
}
