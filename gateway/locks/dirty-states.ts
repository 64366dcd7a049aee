/**
 * Tracks the locks whose state in memory is newer than the stored one ("dirty"), and chooses which states are written
 * with each commit.
 *
 * The log is on disk, and judging the log reproduces a state. So a state need not be written with every uplink of its
 * lock: when a state is loaded, the uplinks after it are judged again. This class limits that work. Dirty states are
 * written in batches, a few with each commit, so that no commit must write them all.
 *
 * A state is *clean*, *dirty* ({@link DirtyStates.add}), or *being flushed* ({@link DirtyStates.flushStarted}). After a
 * flush the state is clean, or dirty again if the commit failed. A state can change while it is being flushed: then it
 * is also dirty.
 */
import { monotonicMs, Seconds } from '../../proto/clock.js';

/** The uplinks that a stored state lacks are always among this many newest uplinks of all locks together. */
export const MAX_DIRTY_UPLINKS = 65_536;
/** Batches are sized so that every dirty state is usually written within this many uplinks. */
const USUAL_DIRTY_UPLINKS = MAX_DIRTY_UPLINKS / 2;
/**
 * If the oldest state has been dirty for longer than this, in real time, a commit writes at least a minimum batch:
 * after a quiet hour few uplinks must be judged again. A larger batch would delay the pings that wait for the commit.
 */
const MAX_DIRTY_TIME = Seconds(10);
const MIN_OVERDUE_BATCH = 64;

interface Entry<Lock> {
  readonly lock: Lock;
  /** How many uplinks had been stored when the state became dirty, and when it became dirty (monotonic). */
  readonly uplinks: number;
  readonly atMs: number;
}

export class DirtyStates<Lock extends object> {
  /** Entries, oldest first. Entries that are no longer in `#current` are skipped. */
  #queue: Entry<Lock>[] = [];
  #first = 0;
  /** The entry of each dirty state. */
  readonly #current = new Map<Lock, Entry<Lock>>();
  /** The entry of each state being flushed. It may be dirty again. */
  readonly #beingFlushed = new Map<Lock, Entry<Lock>>();
  #uplinks = 0;

  /** The number of dirty states. */
  get size(): number {
    return this.#current.size;
  }

  has(lock: Lock): boolean {
    return this.#current.has(lock) || this.#beingFlushed.has(lock);
  }

  /** Notes that the lock's state is dirty. */
  add(lock: Lock): void {
    if (this.#current.has(lock)) return;
    const entry = { lock, uplinks: this.#uplinks, atMs: monotonicMs() };
    this.#current.set(lock, entry);
    this.#queue.push(entry);
  }

  /** Must be called when the lock's state was stored in another way, or dropped. */
  delete(lock: Lock): void {
    this.#current.delete(lock);
  }

  /**
   * Must be called when the current states of these locks are being written; {@link flushed} or {@link flushFailed}
   * must follow.
   */
  flushStarted(locks: Iterable<Lock>): void {
    for (const lock of locks) {
      const entry = this.#current.get(lock);
      if (entry === undefined) continue;
      this.#current.delete(lock);
      this.#beingFlushed.set(lock, entry);
    }
  }

  /** Notes that the states being flushed were not stored: they are dirty again, at their old places in the queue. */
  flushFailed(): void {
    if (this.#beingFlushed.size === 0) return;
    const restored = [...this.#beingFlushed.values()].sort((a, b) => a.uplinks - b.uplinks);
    const others = this.#queue.slice(this.#first).filter(({ lock }) => !this.#beingFlushed.has(lock));
    for (const entry of restored) this.#current.set(entry.lock, entry);
    this.#queue = [...restored, ...others];
    this.#first = 0;
    this.#beingFlushed.clear();
  }

  /** The locks whose states the next commit must write. @param uplinks number of uplinks in the commit */
  nextBatch(uplinks: number): Lock[] {
    const nextBatch: Lock[] = [];
    let wanted = Math.ceil((this.size * uplinks) / USUAL_DIRTY_UPLINKS);
    for (let at = this.#skip(); at < this.#queue.length; at++) {
      const entry = this.#queue[at] as Entry<Lock>;
      if (this.#current.get(entry.lock) !== entry) continue;
      if (nextBatch.length === 0 && monotonicMs() - entry.atMs > MAX_DIRTY_TIME)
        wanted = Math.max(wanted, MIN_OVERDUE_BATCH);
      const mustBeWritten = this.#uplinks + uplinks - entry.uplinks >= MAX_DIRTY_UPLINKS;
      if (!mustBeWritten && nextBatch.length >= wanted) break;
      nextBatch.push(entry.lock);
    }
    return nextBatch;
  }

  /** Notes that a commit stored this many uplinks and the states being flushed. */
  flushed(uplinks: number): void {
    this.#uplinks += uplinks;
    this.#beingFlushed.clear();
  }

  /** The index of the first current entry. */
  #skip(): number {
    while (this.#first < this.#queue.length) {
      const entry = this.#queue[this.#first] as Entry<Lock>;
      if (this.#current.get(entry.lock) === entry) break;
      this.#first += 1;
    }
    if (this.#first * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#first);
      this.#first = 0;
    }
    return this.#first;
  }
}
