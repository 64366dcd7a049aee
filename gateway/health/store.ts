/**
 * Wraps the store: times and counts every write, and decides what a failed write means for the gateway.
 *
 * With a full disk, or a file that another process locks, the gateway waits: it is not ready, accepts no data that must
 * be stored, and tries a write at intervals until one succeeds.
 *
 * After an I/O error the gateway must stop. When fsync fails, Linux marks the pages as clean all the same: the next
 * fsync reports success, and reads return data that never reached the disk. From then on the store's answers can't be
 * trusted, and further writes (a checkpoint too) can spread the damage. So nothing is written any more, and the process
 * must end; the next start reads what is really on the disk, which includes everything that was acknowledged. The
 * process must also end if another one has taken over its place among several gateways (a failure of the kind
 * `fenced`).
 */
import { randomBytes } from 'node:crypto';
import { type Clock, monotonicMs, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { GatewayEvents } from '../events.js';
import type { CommitKind } from '../operation-events.js';
import { StoreFailure } from '../store/contract/errors.js';
import { type Commit, EMPTY_COMMIT } from '../store/contract/log/commit.js';
import type { Store } from '../store/contract/store.js';
import { forwardStore, type WriteMethod } from '../store/contract/store-methods.js';
import type { DeliveryProgress } from '../store/contract/webhooks/delivery.js';
import type { Health } from './health.js';

/**
 * How often a write is tried while the store can't write. Acknowledging must resume within 5 s of the store's return.
 */
const PROBE_INTERVAL = Seconds(0.5);
/** A connecting lock triggers a probe at once, but not sooner than this after the last one. */
const MIN_PROBE_SPACING = Seconds(0.1);
/** How long a connecting lock waits for a probe. */
const MAX_PROBE_WAIT = Seconds(1);
/**
 * A probe writes as much as an ordinary commit, so that it does not succeed in the last free pages of a full disk. Its
 * bytes are random, since PostgreSQL compresses long texts. The text is cleared at once.
 */
const PROBE_BYTES = 48 * 1024;
/** The name of the metadata entry that a probe writes. */
const PROBE_METADATA = 'write-probe';

export interface StoreWatchParts {
  readonly store: Store;
  readonly health: Health;
  readonly events: GatewayEvents;
  /** Wall-clock time. */
  readonly clock: Clock;
  /** The time for events, ms since the epoch by the run's clock (wall-clock time, except in a sped-up simulation). */
  readonly now: () => number;
  /** Called once, when the store is broken: the process must end. */
  readonly onBroken?: ((failure: StoreFailure) => void) | undefined;
}

export class StoreWatch {
  /** To be used in place of the wrapped store. */
  readonly store: Store;
  readonly #parts: StoreWatchParts;
  #broken: StoreFailure | undefined;
  #probing: Promise<void> | undefined;
  /** When the last probe ended, ms by a monotonic clock. */
  #probedAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #closed = false;

  constructor(parts: StoreWatchParts) {
    this.#parts = parts;
    this.store = forwardStore(parts.store, (name, write) => this.#watchWrite(name, write));
  }

  /** Closes the store. A broken store is not closed, since closing would write. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    if (this.#broken === undefined) await this.#parts.store.close();
  }

  /** Must be called when the store can't write for now, although no write has failed: a probe finds out when it can. */
  troubled(why: string): void {
    this.#parts.health.begin('store', why);
    this.#probeLater();
  }

  /** Whether the store can write. After a failure this is tested with a probe. */
  async canWrite(): Promise<boolean> {
    const { health } = this.#parts;
    if (health.isStoreFailing && monotonicMs() - this.#probedAt >= MIN_PROBE_SPACING) await this.#probeAWhile();
    return !health.isStoreFailing;
  }

  /** Wraps a method of the store that writes. */
  #watchWrite(name: string, write: WriteMethod): WriteMethod {
    const commitKind = commitKindOf(name);
    return async (...args) => {
      if (this.#broken !== undefined) throw this.#broken;
      const startedAt = monotonicMs();
      const emitCommit = (failure?: StoreFailure): void => {
        const { events, now } = this.#parts;
        const durationMs = monotonicMs() - startedAt;
        events.emit('commit', {
          atMs: now(),
          what: commitKind,
          durationMs,
          rows: rowsOf(commitKind, args),
          failure: failure?.kind,
        });
      };
      let result: unknown;
      try {
        result = await write(...args);
      } catch (error) {
        // A caller's mistake is no failure of the store.
        if (error instanceof LockgateError) throw error;
        const failure = error instanceof StoreFailure ? error : new StoreFailure(`write (${name})`, error);
        emitCommit(failure);
        this.#handleFailure(failure, commitKind);
        throw failure;
      }
      // Another write broke the store meanwhile, so this one's success can't be trusted.
      if (this.#broken !== undefined) throw this.#broken;
      emitCommit();
      return result;
    };
  }

  #handleFailure(failure: StoreFailure, commitKind: CommitKind): void {
    if (isFinal(failure)) this.#setBroken(failure);
    // Whatever the failure of an ingest commit, pings can't be stored.
    else if (failure.kind !== 'other' || commitKind === 'ingest') {
      this.#parts.health.begin('store', failure.message);
      this.#probeLater();
    }
    // Only this write may be at fault; a probe shows whether the store can write.
    else void this.#probe();
  }

  #setBroken(failure: StoreFailure): void {
    if (this.#broken !== undefined) return;
    this.#broken = failure;
    this.#timer?.cancel();
    const { health, events, now, onBroken } = this.#parts;
    health.begin('store-broken', failure.message);
    const uncertain = failure.kind === 'io' ? 'what is on the disk is uncertain now, so ' : '';
    const why = `${failure.message}; ${uncertain}nothing more is written or acknowledged`;
    events.emit('store-broken', { atMs: now(), why });
    onBroken?.(failure);
  }

  #probeLater(): void {
    if (this.#closed || this.#broken !== undefined) return;
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.after(PROBE_INTERVAL, () => void this.#probe());
  }

  /** Runs a probe, and waits for it for some time: a probe of a database that is away ends when it is back. */
  async #probeAWhile(): Promise<void> {
    let timer: Timer | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = this.#parts.clock.after(MAX_PROBE_WAIT, resolve);
    });
    await Promise.race([this.#probe(), limit]);
    timer?.cancel();
  }

  /** Runs a probe. Probes run one at a time: a call during a probe waits for the same one. */
  #probe(): Promise<void> {
    if (this.#closed || this.#broken !== undefined) return Promise.resolve();
    this.#probing ??= this.#tryWrite().finally(() => {
      this.#probing = undefined;
      this.#probedAt = monotonicMs();
    });
    return this.#probing;
  }

  async #tryWrite(): Promise<void> {
    const { store, health } = this.#parts;
    const failure = await tryWrite(store);
    if (failure === undefined) health.end('store');
    else if (isFinal(failure)) this.#setBroken(failure);
    else {
      health.begin('store', failure.message);
      this.#probeLater();
    }
  }
}

/** Whether nothing more may be written after the failure, so that the process must end. */
function isFinal({ kind }: StoreFailure): boolean {
  return kind === 'io' || kind === 'fenced';
}

/** Writes a probe. Returns the failure, or undefined if the store can write. */
async function tryWrite(store: Store): Promise<StoreFailure | undefined> {
  try {
    // Uplinks are written in another way than metadata, so both are tried.
    await store.append(EMPTY_COMMIT);
    await store.writeMetadata(PROBE_METADATA, randomBytes(PROBE_BYTES).toString('base64'));
    await store.writeMetadata(PROBE_METADATA, '');
    return undefined;
  } catch (error) {
    return error instanceof StoreFailure ? error : new StoreFailure('write', error);
  }
}

function commitKindOf(method: string): CommitKind {
  if (method === 'append') return 'ingest';
  return method === 'recordProgress' ? 'deliveries' : 'other';
}

/** The number of rows that a write stores, by its first argument. */
function rowsOf(kind: CommitKind, [argument]: readonly unknown[]): number {
  if (kind === 'ingest') return (argument as Commit).incoming.length;
  if (kind === 'other') return 1;
  return (argument as readonly DeliveryProgress[]).reduce((sum, { attempts }) => sum + attempts.length, 0);
}
