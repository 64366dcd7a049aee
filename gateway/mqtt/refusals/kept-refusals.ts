/**
 * Keeps what the broker refused of locks: it listens to the events, counts repeats together, and has them written in
 * batches beside the pings, whatever strangers do. What is lost by a kill is the last second.
 *
 * Who names a lock and does not prove to be it may take the room of others who do the same, never that of a lock which
 * is authenticated.
 */
import { type Clock, Hours, type Milliseconds, Seconds, type Timer } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { GatewayEvents, Refused } from '../../events.js';
import type { Refusal, RefusalChange, RefusalStore } from '../../store/contract/refusal-store.js';

/** From the first that waits to its write; so there is one write a second at the most. */
export const WRITE_EVERY: Milliseconds = Seconds(1);
/** Rows of one write. */
export const MOST_WRITTEN = 100;
/** Locks and reasons that wait, of those who proved who they are and of those who did not; more are left out. */
export const MOST_WAITING = 500;
/** The pause after a write that failed. */
const AFTER_STORE_FAILURE = Seconds(5);
/** What is too old goes at least so often, also where nothing is refused. */
const SWEEP_EVERY = Hours(1);

export interface KeptRefusalsParts {
  readonly store: RefusalStore;
  readonly events: Pick<GatewayEvents, 'on'>;
  /** The wall clock, for the pace of writes. */
  readonly clock: Clock;
  /** Stamps: the run's clock. */
  readonly now: () => number;
  readonly isStoreFailing: () => boolean;
}

export class KeptRefusals {
  readonly #parts: KeptRefusalsParts;
  readonly #proven = new Map<string, RefusalChange>();
  readonly #claimed = new Map<string, RefusalChange>();
  #timer: Timer | undefined;
  #sweepTimer: Timer | undefined;
  #storing: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: KeptRefusalsParts) {
    this.#parts = parts;
    parts.events.on('refused', (refused) => this.#note(refused));
    this.#armSweep();
  }

  /** How many rows wait for their write. */
  get waiting(): number {
    return this.#proven.size + this.#claimed.size;
  }

  /** Those of a lock, up to this moment where the store can write; the latest first. */
  async read(deviceId: number): Promise<Refusal[]> {
    await this.store();
    return await this.#parts.store.read(deviceId, this.#parts.now());
  }

  /** Writes what waits, as much as one write may have. It never rejects: what can't be written waits on. */
  store(): Promise<void> {
    this.#storing = this.#storing.then(() => this.#storeWaiting());
    return this.#storing;
  }

  /** Drops what waits of a lock whose history is about to be erased; resolves when nothing of it is on its way. */
  async forget(mac: Mac): Promise<void> {
    for (const waiting of [this.#proven, this.#claimed])
      for (const [key, change] of waiting) if (change.mac === mac) waiting.delete(key);
    await this.#storing;
  }

  /** Keeps what waits, if the store lets it. To be called when nothing more happens. */
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
    if (before === undefined && waiting.size >= MOST_WAITING) return;
    waiting.set(key, before === undefined ? change : joined(before, change));
  }

  async #storeWaiting(): Promise<void> {
    const { store, now, isStoreFailing } = this.#parts;
    if (this.waiting === 0) return;
    if (isStoreFailing()) return this.#arm(AFTER_STORE_FAILURE);
    const proven = take(this.#proven, MOST_WRITTEN);
    const claimed = take(this.#claimed, MOST_WRITTEN - proven.length);
    try {
      await store.write([...proven, ...claimed], now());
    } catch {
      // The watch on the store has reported it. Nobody else is to suffer for what was refused.
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

function joined(one: RefusalChange, other: RefusalChange): RefusalChange {
  const [older, newer] = one.lastAtMs <= other.lastAtMs ? [one, other] : [other, one];
  return { ...newer, count: one.count + other.count, firstAtMs: Math.min(older.firstAtMs, newer.firstAtMs) };
}
