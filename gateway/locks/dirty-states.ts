/**
 * The locks with a dirty state: one that is newer than what is stored.
 *
 * The log is durable, and a state follows from judging the log. So a state need not be written with every uplink of its
 * lock: when it is loaded, the uplinks after it are judged again. This class bounds that work. Dirty states are written
 * in batches, a few with each commit, so that no commit has to carry them all.
 *
 * A state is *clean*, *dirty* ({@link DirtyStates.add}), or *being flushed* ({@link DirtyStates.flushStarted}), from
 * where it becomes clean, or dirty again if the commit fails. A lock may be being flushed and dirty again at once.
 */
import { monotonicMs, Seconds } from '../../proto/clock.js';

/** What a stored state lacks is among so many of the newest uplinks of all locks together. */
export const MAX_DIRTY_UPLINKS = 65_536;
/** Batches are sized so that every dirty state is usually written within half as many. */
const USUAL_DIRTY = MAX_DIRTY_UPLINKS / 2;
/**
 * Where the oldest has been dirty for so long, in real time, a commit writes at least so many: after a quiet hour
 * little is left to be judged again. Not more at once, since that delays the pings that wait for the commit.
 */
const MAX_DIRTY_TIME = Seconds(10);
const MIN_OVERDUE_BATCH = 64;

interface Entry<Lock> {
  readonly lock: Lock;
  /** How many uplinks had been stored when the state became dirty, and when that was (monotonic). */
  readonly uplinks: number;
  readonly atMs: number;
}

export class DirtyStates<Lock extends object> {
  /** The oldest first. An entry that is not (any longer) the current one of its lock is skipped. */
  #queue: Entry<Lock>[] = [];
  #first = 0;
  readonly #current = new Map<Lock, Entry<Lock>>();
  /** The states being flushed. Their locks may be dirty again. */
  readonly #underWay = new Map<Lock, Entry<Lock>>();
  #uplinks = 0;

  /** How many states are dirty. */
  get size(): number {
    return this.#current.size;
  }

  has(lock: Lock): boolean {
    return this.#current.has(lock) || this.#underWay.has(lock);
  }

  /** The lock's state is dirty. */
  add(lock: Lock): void {
    if (this.#current.has(lock)) return;
    const entry = { lock, uplinks: this.#uplinks, atMs: monotonicMs() };
    this.#current.set(lock, entry);
    this.#queue.push(entry);
  }

  /** The lock's state has been stored otherwise, or dropped. */
  delete(lock: Lock): void {
    this.#current.delete(lock);
  }

  /**
   * The current states of these locks are being written. {@link flushed} or {@link flushFailed} is called when that has
   * ended.
   */
  flushStarted(locks: Iterable<Lock>): void {
    for (const lock of locks) {
      const entry = this.#current.get(lock);
      if (entry === undefined) continue;
      this.#current.delete(lock);
      this.#underWay.set(lock, entry);
    }
  }

  /** The states being flushed were not stored: their locks are dirty again, at their old places in the queue. */
  flushFailed(): void {
    if (this.#underWay.size === 0) return;
    const back = [...this.#underWay.values()].sort((a, b) => a.uplinks - b.uplinks);
    const others = this.#queue.slice(this.#first).filter(({ lock }) => !this.#underWay.has(lock));
    for (const entry of back) this.#current.set(entry.lock, entry);
    this.#queue = [...back, ...others];
    this.#first = 0;
    this.#underWay.clear();
  }

  /** The locks whose states are to be written together with so many uplinks. */
  nextBatch(uplinks: number): Lock[] {
    const nextBatch: Lock[] = [];
    let share = Math.ceil((this.size * uplinks) / USUAL_DIRTY);
    for (let at = this.#skip(); at < this.#queue.length; at++) {
      const entry = this.#queue[at] as Entry<Lock>;
      if (this.#current.get(entry.lock) !== entry) continue;
      if (nextBatch.length === 0 && monotonicMs() - entry.atMs > MAX_DIRTY_TIME)
        share = Math.max(share, MIN_OVERDUE_BATCH);
      const isLast = this.#uplinks + uplinks - entry.uplinks >= MAX_DIRTY_UPLINKS;
      if (!isLast && nextBatch.length >= share) break;
      nextBatch.push(entry.lock);
    }
    return nextBatch;
  }

  /** So many uplinks were stored, and with them the states being flushed. */
  flushed(uplinks: number): void {
    this.#uplinks += uplinks;
    this.#underWay.clear();
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
