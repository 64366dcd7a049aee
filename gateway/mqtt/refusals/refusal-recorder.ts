/**
 * Records in the store what the broker refused of locks. It listens to the events, counts repeats together, and writes
 * them in small batches, so that attackers can't slow down the writing of pings. A kill loses the last second.
 *
 * A connection that names a lock without proving it may displace others that do the same, never a refusal of an
 * authenticated lock.
 */
import { type Clock, Hours, type Milliseconds, Seconds, type Timer } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { GatewayEvents, Refused } from '../../events.js';
import type { Refusal, RefusalChange, RefusalStore } from '../../store/contract/refusal-store.js';

/** From the first waiting refusal to its write: at most one write per second. */
export const WRITE_EVERY: Milliseconds = Seconds(1);
/** Rows in one write. */
export const MAX_WRITTEN = 100;
/** Rows that may wait, of authenticated clients and of others each; more are dropped. */
export const MAX_WAITING = 500;
/** The pause after a write that failed. */
const AFTER_STORE_FAILURE = Seconds(5);
/** How often old rows are deleted, at least, also when nothing is refused. */
const SWEEP_EVERY = Hours(1);

export interface RefusalRecorderParts {
  readonly store: RefusalStore;
  readonly events: Pick<GatewayEvents, 'on'>;
  /** The wall clock, for the intervals between writes. */
  readonly clock: Clock;
  /** The run's clock, for timestamps. */
  readonly now: () => number;
  readonly isStoreFailing: () => boolean;
}

export class RefusalRecorder {
  readonly #parts: RefusalRecorderParts;
  /** Of authenticated clients. */
  readonly #proven = new Map<string, RefusalChange>();
  /** Of clients that only claim to be a lock. */
  readonly #claimed = new Map<string, RefusalChange>();
  #timer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  #storing: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: RefusalRecorderParts) {
    this.#parts = parts;
    parts.events.on('refused', (refused) => this.#note(refused));
    this.#armSweep();
  }

  /** How many rows wait to be written. */
  get waiting(): number {
    return this.#proven.size + this.#claimed.size;
  }

  /** The refusals of a lock, the latest first; up to this moment, if the store can write. */
  async read(deviceId: number): Promise<Refusal[]> {
    await this.store();
    return await this.#parts.store.read(deviceId, this.#parts.now());
  }

  /** Writes what waits, at most one batch. It never rejects: what can't be written keeps waiting. */
  store(): Promise<void> {
    this.#storing = this.#storing.then(() => this.#storeWaiting());
    return this.#storing;
  }

  /** Drops what waits of a lock whose history is about to be erased; resolves when no write of it is under way. */
  async forget(mac: Mac): Promise<void> {
    for (const waiting of [this.#proven, this.#claimed])
      for (const [key, change] of waiting) if (change.mac === mac) waiting.delete(key);
    await this.#storing;
  }

  /** Writes what waits, if the store can. To be called when no more events come. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#sweepTimer?.cancel();
    let before: number;
    do {
      before = this.waiting;
      await this.store();
    } while (this.waiting > 0 && this.waiting < before);
  }

  #note({ mac, source, isAuthenticated, what, reason, why, address, atMs }: Refused): void {
    if (mac === null) return;
    // It is known by now that no lock has this MAC.
    if (reason === 'unknown-lock') return;
    const change = { mac, source, what, reason, why, address, count: 1, firstAtMs: atMs, lastAtMs: atMs };
    this.#add(isAuthenticated ? this.#proven : this.#claimed, change);
    this.#arm(WRITE_EVERY);
  }

  #add(waiting: Map<string, RefusalChange>, change: RefusalChange): void {
    const { mac, source, what, why } = change;
    const key = `${mac} ${source} ${what} ${why}`;
    const before = waiting.get(key);
    if (before === undefined && waiting.size >= MAX_WAITING) return;
    waiting.set(key, before === undefined ? change : merged(before, change));
  }

  async #storeWaiting(): Promise<void> {
    const { store, now, isStoreFailing } = this.#parts;
    if (this.waiting === 0) return;
    if (isStoreFailing()) return this.#arm(AFTER_STORE_FAILURE);
    const proven = take(this.#proven, MAX_WRITTEN);
    const claimed = take(this.#claimed, MAX_WRITTEN - proven.length);
    try {
      await store.write([...proven, ...claimed], now());
    } catch {
      // The watch on the store has reported it; a failed write of refusals must not disturb anything else.
      for (const change of proven) this.#add(this.#proven, change);
      for (const change of claimed) this.#add(this.#claimed, change);
      return this.#arm(AFTER_STORE_FAILURE);
    }
    if (this.waiting > 0) this.#arm(WRITE_EVERY);
  }

  #arm(delay: Milliseconds): void {
    if (this.#isStopped) return;
    this.#timer ??= this.#parts.clock.after(delay, () => {
      this.#timer = undefined;
      void this.store();
    });
  }

  #armSweep(): void {
    this.#sweepTimer = this.#parts.clock.after(SWEEP_EVERY, () => {
      if (this.#isStopped) return;
      if (!this.#parts.isStoreFailing()) this.#parts.store.write([], this.#parts.now()).catch(() => undefined);
      this.#armSweep();
    });
  }
}

/** Takes the oldest, at most `most`. */
function take(waiting: Map<string, RefusalChange>, most: number): RefusalChange[] {
  const taken: RefusalChange[] = [];
  for (const [key, change] of waiting) {
    if (taken.length >= most) break;
    taken.push(change);
    waiting.delete(key);
  }
  return taken;
}

function merged(one: RefusalChange, other: RefusalChange): RefusalChange {
  const [older, newer] = one.lastAtMs <= other.lastAtMs ? [one, other] : [other, one];
  return { ...newer, count: one.count + other.count, firstAtMs: Math.min(older.firstAtMs, newer.firstAtMs) };
}
