/**
 * The store under watch: every write is timed and counted, and what fails decides what becomes of the gateway
 * (quality.md §2, disk full and I/O error).
 *
 * A full disk, or a file that another process holds, is waited out: the gateway is not ready, takes nothing that would
 * have to be kept, and tries a write now and then until one succeeds.
 *
 * An I/O error is the end. When fsync fails, Linux marks the pages as clean all the same: the next fsync reports
 * success, and reading gives back what never reached the disk. From there on every promise of the store may be a lie,
 * and writing on (a checkpoint too) can spread the damage. So nothing is written any more, and the process has to end;
 * the next start reads what is really there, which has everything that was acknowledged.
 */
import { type Clock, monotonicMs, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { CommitKind, GatewayEvents } from '../events.js';
import { StoreFailure } from '../store/contract/errors.js';
import type { Commit, DeliveryProgress, Store } from '../store/contract/store.js';
import { forwardStore, type WriteMethod } from '../store/contract/store-methods.js';
import type { Health } from './health.js';

/** How often a write is tried while the store can't write; acking goes on within 5 s of its success (quality.md §2). */
const PROBE_EVERY = Seconds(0.5);
/** Somebody who wants to be let in asks at once, but not so soon after the last try. */
const PROBE_SPACING = Seconds(0.1);
/**
 * What is written then: as much as an ordinary commit, so that the last free pages of a full disk are not taken for
 * room. It is overwritten with nothing at once.
 */
const PROBE_CHARACTERS = 64 * 1024;
const PROBE_METADATA = 'write-probe';

const NOTHING: Commit = { incoming: [], judged: [], commands: [], states: new Map() };

export interface StoreWatchParts {
  readonly store: Store;
  readonly health: Health;
  readonly events: GatewayEvents;
  /** The wall's clock. */
  readonly clock: Clock;
  /** Stamps the events. */
  readonly now: () => number;
  /** Told once, when the store is broken: the process has to end. */
  readonly onBroken?: ((failure: StoreFailure) => void) | undefined;
}

export class StoreWatch {
  /** To be used instead of the store that is watched. */
  readonly store: Store;
  readonly #parts: StoreWatchParts;
  #broken: StoreFailure | undefined;
  #probing: Promise<void> | undefined;
  #probedAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #closed = false;

  constructor(parts: StoreWatchParts) {
    this.#parts = parts;
    this.store = forwardStore(parts.store, (name, write) => this.#watchWrite(name, write));
  }

  /** Closes the store. A broken one is left as it is: closing it would write. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    if (this.#broken === undefined) await this.#parts.store.close();
  }

  /** Whether the store can write: while it failed the last time, that is tried. */
  async canWrite(): Promise<boolean> {
    const { health } = this.#parts;
    if (health.isStoreFailing && monotonicMs() - this.#probedAt >= PROBE_SPACING) await this.#probe();
    return !health.isStoreFailing;
  }

  #watchWrite(name: string, write: WriteMethod): WriteMethod {
    const what = commitKind(name);
    return async (...args) => {
      if (this.#broken !== undefined) throw this.#broken;
      const startedAt = monotonicMs();
      const tell = (failure?: StoreFailure): void => {
        const { events, now } = this.#parts;
        const durationMs = monotonicMs() - startedAt;
        events.emit('commit', { atMs: now(), what, durationMs, rows: rowsOf(what, args), failure: failure?.kind });
      };
      let result: unknown;
      try {
        result = await write(...args);
      } catch (error) {
        // What the caller got wrong is no failure of the store's.
        if (error instanceof LockgateError) throw error;
        const failure = error instanceof StoreFailure ? error : new StoreFailure(`write (${name})`, error);
        tell(failure);
        this.#failed(failure, what);
        throw failure;
      }
      // It was under way when another one broke: that it ended well means nothing any more.
      if (this.#broken !== undefined) throw this.#broken;
      tell();
      return result;
    };
  }

  #failed(failure: StoreFailure, what: CommitKind): void {
    if (failure.kind === 'io') this.#break(failure);
    else if (failure.kind !== 'other' || what === 'ingest') {
      this.#parts.health.begin('store', failure.message);
      this.#probeLater();
    }
    // Something else may be wrong with this one write alone; a probe tells.
    else void this.#probe();
  }

  #break(failure: StoreFailure): void {
    if (this.#broken !== undefined) return;
    this.#broken = failure;
    this.#timer?.cancel();
    const { health, events, now, onBroken } = this.#parts;
    health.begin('store-broken', failure.message);
    const why = `${failure.message}; what is on the disk is uncertain now, so nothing more is written or acknowledged`;
    events.emit('store-broken', { atMs: now(), why });
    onBroken?.(failure);
  }

  #probeLater(): void {
    if (this.#closed || this.#broken !== undefined) return;
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.after(PROBE_EVERY, () => void this.#probe());
  }

  /** One at a time: who asks while one is under way gets its end. */
  #probe(): Promise<void> {
    if (this.#closed || this.#broken !== undefined) return Promise.resolve();
    this.#probing ??= this.#tryOnce().finally(() => {
      this.#probing = undefined;
      this.#probedAt = monotonicMs();
    });
    return this.#probing;
  }

  async #tryOnce(): Promise<void> {
    const { store, health } = this.#parts;
    const failure = await tryWrite(store);
    if (failure === undefined) health.end('store');
    else if (failure.kind === 'io') this.#break(failure);
    else {
      health.begin('store', failure.message);
      this.#probeLater();
    }
  }
}

/** Why nothing can be written; undefined where it can. */
async function tryWrite(store: Store): Promise<StoreFailure | undefined> {
  try {
    await store.append(NOTHING);
    await store.writeMetadata(PROBE_METADATA, '0'.repeat(PROBE_CHARACTERS));
    await store.writeMetadata(PROBE_METADATA, '');
    return undefined;
  } catch (error) {
    return error instanceof StoreFailure ? error : new StoreFailure('write', error);
  }
}

function commitKind(method: string): CommitKind {
  if (method === 'append') return 'ingest';
  return method === 'recordProgress' ? 'deliveries' : 'other';
}

function rowsOf(what: CommitKind, [first]: readonly unknown[]): number {
  if (what === 'ingest') return (first as Commit).incoming.length;
  if (what === 'other') return 1;
  return (first as readonly DeliveryProgress[]).reduce((sum, { attempts }) => sum + attempts.length, 0);
}
