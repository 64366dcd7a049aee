/**
 * Records in the store what the broker refused from locks, such as a CONNECT with a wrong secret. The recorder listens
 * to `refused` events, counts repeats in one row of the store's table of refusals, and writes small batches, so that
 * attackers can't slow down the storing of pings. A crash loses the last second.
 *
 * Refusals of clients that only claim to be a lock never displace refusals of authenticated locks.
 */
import { type Clock, Hours, type Milliseconds, Seconds, type Timer } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { GatewayEvents } from '../../events.js';
import type { Refused } from '../../lock-events.js';
import type { Refusal, RefusalChange, RefusalStore } from '../../store/contract/devices/refusal-store.js';

/** The wait from the first unwritten refusal to its write: at most one write per second. */
export const WRITE_INTERVAL: Milliseconds = Seconds(1);
/** Maximum number of rows in one write. */
export const MAX_WRITTEN_ROWS = 100;
/**
 * Maximum number of rows about authenticated clients that wait to be written, and the same number about other clients.
 * Further refusals are dropped.
 */
export const MAX_WAITING_ROWS = 500;
/** The pause after a write that failed. */
const STORE_RETRY_DELAY = Seconds(5);
/** Old rows are deleted at least this often, also when nothing is refused. */
const SWEEP_INTERVAL = Hours(1);

export interface RefusalRecorderParts {
  readonly store: RefusalStore;
  readonly events: Pick<GatewayEvents, 'on'>;
  /** The wall clock, for the intervals between writes. */
  readonly clock: Clock;
  /** The run's clock (wall-clock time, except in a sped-up simulation), for timestamps. */
  readonly now: () => number;
  readonly isStoreFailing: () => boolean;
}

export class RefusalRecorder {
  readonly #parts: RefusalRecorderParts;
  /** Waiting refusals of authenticated clients. */
  readonly #ofAuthenticated = new Map<string, RefusalChange>();
  /** Waiting refusals of clients that only claim to be a lock. */
  readonly #ofUnauthenticated = new Map<string, RefusalChange>();
  #timer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: RefusalRecorderParts) {
    this.#parts = parts;
    parts.events.on('refused', (refused) => this.#note(refused));
    this.#scheduleSweep();
  }

  /** The number of rows that wait to be written. */
  get waiting(): number {
    return this.#ofAuthenticated.size + this.#ofUnauthenticated.size;
  }

  /** The stored refusals of a lock, latest first. First writes a batch of waiting ones, if the store can write. */
  async read(deviceId: number): Promise<Refusal[]> {
    await this.writeWaiting();
    return await this.#parts.store.read(deviceId, this.#parts.now());
  }

  /** Writes waiting refusals, at most one batch. Never rejects: what can't be written keeps waiting. */
  writeWaiting(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeBatch());
    return this.#writing;
  }

  /** Drops the waiting refusals of a lock whose history will be erased. Resolves when no write is running. */
  async forget(mac: Mac): Promise<void> {
    for (const waiting of [this.#ofAuthenticated, this.#ofUnauthenticated])
      for (const [key, change] of waiting) if (change.mac === mac) waiting.delete(key);
    await this.#writing;
  }

  /** Writes all waiting refusals, if the store can write. Must be called when no more events are emitted. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#sweepTimer?.cancel();
    let waitingBefore: number;
    do {
      waitingBefore = this.waiting;
      await this.writeWaiting();
    } while (this.waiting > 0 && this.waiting < waitingBefore);
  }

  #note({ mac, source, isAuthenticated, what, reason, why, address, atMs }: Refused): void {
    if (mac === null) return;
    // No lock has this MAC, so there is none whose history could show the refusal.
    if (reason === 'unknown-lock') return;
    const change = { mac, source, what, reason, why, address, count: 1, firstAtMs: atMs, lastAtMs: atMs };
    this.#add(isAuthenticated ? this.#ofAuthenticated : this.#ofUnauthenticated, change);
    this.#scheduleWrite(WRITE_INTERVAL);
  }

  #add(waiting: Map<string, RefusalChange>, change: RefusalChange): void {
    const { mac, source, what, why } = change;
    const key = `${mac} ${source} ${what} ${why}`;
    const known = waiting.get(key);
    if (known === undefined && waiting.size >= MAX_WAITING_ROWS) return;
    waiting.set(key, known === undefined ? change : mergeRefusals(known, change));
  }

  async #writeBatch(): Promise<void> {
    const { store, now, isStoreFailing } = this.#parts;
    if (this.waiting === 0) return;
    if (isStoreFailing()) return this.#scheduleWrite(STORE_RETRY_DELAY);
    const authenticated = take(this.#ofAuthenticated, MAX_WRITTEN_ROWS);
    const unauthenticated = take(this.#ofUnauthenticated, MAX_WRITTEN_ROWS - authenticated.length);
    try {
      await store.write([...authenticated, ...unauthenticated], now());
    } catch {
      // health/store.ts reports a failing store. A failed write of refusals must not disturb anything else.
      for (const change of authenticated) this.#add(this.#ofAuthenticated, change);
      for (const change of unauthenticated) this.#add(this.#ofUnauthenticated, change);
      return this.#scheduleWrite(STORE_RETRY_DELAY);
    }
    if (this.waiting > 0) this.#scheduleWrite(WRITE_INTERVAL);
  }

  #scheduleWrite(delay: Milliseconds): void {
    if (this.#isStopped) return;
    this.#timer ??= this.#parts.clock.after(delay, () => {
      this.#timer = undefined;
      void this.writeWaiting();
    });
  }

  /** Deletes old rows at the interval: a write of nothing does so too. After a failure, the next write deletes them. */
  #scheduleSweep(): void {
    this.#sweepTimer = this.#parts.clock.after(SWEEP_INTERVAL, () => {
      if (this.#isStopped) return;
      if (!this.#parts.isStoreFailing()) this.#parts.store.write([], this.#parts.now()).catch(() => undefined);
      this.#scheduleSweep();
    });
  }
}

/** Takes the oldest waiting refusals, at most `limit`. */
function take(waiting: Map<string, RefusalChange>, limit: number): RefusalChange[] {
  const taken: RefusalChange[] = [];
  for (const [key, change] of waiting) {
    if (taken.length >= limit) break;
    taken.push(change);
    waiting.delete(key);
  }
  return taken;
}

/** Two refusals for the same reason as one, with the sum of their counts. */
function mergeRefusals(a: RefusalChange, b: RefusalChange): RefusalChange {
  const [older, newer] = a.lastAtMs <= b.lastAtMs ? [a, b] : [b, a];
  return { ...newer, count: a.count + b.count, firstAtMs: Math.min(older.firstAtMs, newer.firstAtMs) };
}
