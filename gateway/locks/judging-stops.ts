/**
 * Which locks are not judged, since the judge threw (ingest/judging.ts), and whose state must be repaired. The judge
 * may have left such a state half changed: it is *torn* until the stored one has replaced it, and *lost* if the stored
 * one could not be read. Bookkeeping only: state-repair.ts reads and writes the store. Used by `Locks` (locks.ts).
 */
import { type JudgingStop, messageOf } from '../ingest/judging.js';
import type { KnownLock } from './known-lock.js';

/** The judging of a lock stopped, or resumed if `unjudged` is undefined. */
export interface JudgingChange {
  readonly lock: KnownLock;
  readonly unjudged: JudgingStop | undefined;
}

const NO_CHANGES: readonly JudgingChange[] = Object.freeze([]);

export class JudgingStops {
  readonly #version: string;
  readonly #torn = new Set<KnownLock>();
  readonly #changes: JudgingChange[] = [];

  /** @param version the version of lockgate that judges; another version may have fixed the bug */
  constructor(version: string) {
    this.#version = version;
  }

  /** The locks whose states wait for a repair. */
  get torn(): ReadonlySet<KnownLock> {
    return this.#torn;
  }

  /** The locks whose judging stopped or resumed since the last call. */
  takeChanges(): readonly JudgingChange[] {
    if (this.#changes.length === 0) return NO_CHANGES;
    return this.#changes.splice(0);
  }

  /** Records that the judging of a lock, which was judged until now, has stopped. Its state is torn. */
  stopped(lock: KnownLock, why: string, sinceMs: number): void {
    lock.state.unjudged = { sinceMs, why, version: this.#version };
    this.#noteStop(lock);
    this.#markTorn(lock);
  }

  /** Records that the judge failed while the lock's state was loaded from the store. The state is as stored. */
  stoppedInLoad(lock: KnownLock): void {
    this.#noteStop(lock);
  }

  #noteStop(lock: KnownLock): void {
    this.#changes.push({ lock, unjudged: lock.state.unjudged });
  }

  /** Records that the stored state of a lock, which is not judged, can't be read. */
  lost(lock: KnownLock): void {
    lock.isLost = true;
    this.#markTorn(lock);
  }

  #markTorn(lock: KnownLock): void {
    lock.isTorn = true;
    this.#torn.add(lock);
  }

  /** Records that the lock has a sound state again. @param before why it was not judged, if it was not */
  stateReplaced(lock: KnownLock, before: JudgingStop | undefined): void {
    const { unjudged } = lock.state;
    lock.isTorn = false;
    lock.isLost = false;
    lock.unjudgedEvents = 0;
    this.#torn.delete(lock);
    if (before?.sinceMs !== unjudged?.sinceMs) this.#changes.push({ lock, unjudged });
  }

  /** Forgets a lock that this gateway has no longer. */
  forget(lock: KnownLock): void {
    if (lock.state.unjudged !== undefined) this.#changes.push({ lock, unjudged: undefined });
    this.#torn.delete(lock);
  }
}

/** Says to people that a lock is not judged because its stored state can't be read. */
export function lostBecause(error: Error): string {
  return `its stored state could not be read: ${messageOf(error)}`;
}
