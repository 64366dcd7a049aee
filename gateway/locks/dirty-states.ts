/**
 * Tracks the locks whose state in memory is newer than the stored one ("dirty"), and chooses which states are written
 * with each commit. Writes nothing itself.
 *
 * The store's log of uplinks is on disk, and judging the log again reproduces a state. So a state need not be written
 * with every uplink of its lock: when a state is loaded, the uplinks after it are judged again. This class limits that
 * work. Dirty states are written in batches, a few with each commit, so that no commit must write them all.
 *
 * A state is *clean*, *dirty* ({@link DirtyStates.add}), or *being flushed* ({@link DirtyStates.flushStarted}). After a
 * flush the state is clean, or dirty again if the commit failed. A state can change while it is being flushed: then it
 * is also dirty.
 */
import { Minutes, monotonicMs } from '../../proto/clock.js';

/** The uplinks that a stored state lacks are always among this many newest uplinks of all locks together. */
export const MAX_DIRTY_UPLINKS = 65_536;
/**
 * Batches are sized so that every dirty state is usually written within this many uplinks. The other half is a margin:
 * a state that reaches the limit must be written with the next commit, however large the batch.
 */
const USUAL_DIRTY_UPLINKS = MAX_DIRTY_UPLINKS / 2;
/**
 * If the oldest state has been dirty for longer than this, in real time, a commit writes at least a minimum batch:
 * after a quiet hour few uplinks must be judged again. With a shorter time, a lock that pings every few seconds would
 * have its state written after each ping, which costs more than the ping. A larger batch would delay the pings that
 * wait for the commit.
 */
const MAX_DIRTY_TIME = Minutes(5);
const MIN_OVERDUE_BATCH_STATES = 16;

interface Entry<Lock> {
  readonly lock: Lock;
  /** How many uplinks had been stored when the state became dirty; negative if that was before the start. */
  readonly storedUplinks: number;
  /** When the state became dirty (monotonic). */
  readonly dirtySinceMs: number;
}

export class DirtyStates<Lock extends object> {
  /** Entries, oldest first. Entries that are no longer in `#dirty` are skipped. */
  #queue: Entry<Lock>[] = [];
  /** The index of the first entry of the queue that was not skipped yet. */
  #firstIndex = 0;
  /** The entry of each dirty state. */
  readonly #dirty = new Map<Lock, Entry<Lock>>();
  /** The entry of each state being flushed. It may be dirty again. */
  readonly #beingFlushed = new Map<Lock, Entry<Lock>>();
  /** How many uplinks have been stored since the start. */
  #storedUplinks = 0;
  /** The fraction of a state by which earlier batches were too small: most small commits write no state. */
  #fractionLeft = 0;

  /** The number of dirty states. */
  get size(): number {
    return this.#dirty.size;
  }

  has(lock: Lock): boolean {
    return this.#dirty.has(lock) || this.#beingFlushed.has(lock);
  }

  /** Notes that the lock's state is dirty. */
  add(lock: Lock): void {
    this.#addAt(lock, this.#storedUplinks);
  }

  /**
   * Notes that these states, which were just loaded, are newer than the stored ones. The number is how many of the
   * newest uplinks have come since the first one that the stored state lacks. Those that lack most are written first,
   * so that even a gateway that is killed again and again, soon after each start, writes every state in time.
   */
  addLoaded(lacking: ReadonlyMap<Lock, number>): void {
    if (lacking.size === 0) return;
    for (const [lock, uplinks] of lacking) this.#addAt(lock, this.#storedUplinks - uplinks);
    this.#queue = this.#queue.slice(this.#firstIndex).sort((a, b) => a.storedUplinks - b.storedUplinks);
    this.#firstIndex = 0;
  }

  #addAt(lock: Lock, storedUplinks: number): void {
    if (this.#dirty.has(lock)) return;
    const entry = { lock, storedUplinks, dirtySinceMs: monotonicMs() };
    this.#dirty.set(lock, entry);
    this.#queue.push(entry);
  }

  /** Must be called when the lock's state was stored in another way, or dropped. */
  delete(lock: Lock): void {
    this.#dirty.delete(lock);
  }

  /**
   * Must be called when the current states of these locks are being written; {@link flushed} or {@link flushFailed}
   * must follow.
   */
  flushStarted(locks: Iterable<Lock>): void {
    for (const lock of locks) {
      const entry = this.#dirty.get(lock);
      if (entry === undefined) continue;
      this.#dirty.delete(lock);
      this.#beingFlushed.set(lock, entry);
    }
  }

  /** Notes that the states being flushed were not stored: they are dirty again, at their old places in the queue. */
  flushFailed(): void {
    if (this.#beingFlushed.size === 0) return;
    const restored = [...this.#beingFlushed.values()].sort((a, b) => a.storedUplinks - b.storedUplinks);
    const others = this.#queue.slice(this.#firstIndex).filter(({ lock }) => !this.#beingFlushed.has(lock));
    for (const entry of restored) this.#dirty.set(entry.lock, entry);
    this.#queue = [...restored, ...others];
    this.#firstIndex = 0;
    this.#beingFlushed.clear();
  }

  /** The locks whose states the next commit must write. @param uplinkCount number of uplinks in the commit */
  nextBatch(uplinkCount: number): Lock[] {
    const batch: Lock[] = [];
    const usualStates = this.#fractionLeft + (this.size * uplinkCount) / USUAL_DIRTY_UPLINKS;
    let wantedStates = Math.floor(usualStates);
    this.#fractionLeft = usualStates - wantedStates;
    for (let index = this.#skipOutdated(); index < this.#queue.length; index++) {
      const entry = this.#queue[index] as Entry<Lock>;
      if (this.#dirty.get(entry.lock) !== entry) continue;
      if (batch.length === 0 && monotonicMs() - entry.dirtySinceMs > MAX_DIRTY_TIME)
        wantedStates = Math.max(wantedStates, MIN_OVERDUE_BATCH_STATES);
      const mustBeWritten = this.#storedUplinks + uplinkCount - entry.storedUplinks >= MAX_DIRTY_UPLINKS;
      if (!mustBeWritten && batch.length >= wantedStates) break;
      batch.push(entry.lock);
    }
    return batch;
  }

  /** Notes that a commit stored this many uplinks and the states being flushed. */
  flushed(uplinkCount: number): void {
    this.#storedUplinks += uplinkCount;
    this.#beingFlushed.clear();
  }

  /** Skips entries whose states are not dirty any more. Returns the index of the first other entry. */
  #skipOutdated(): number {
    while (this.#firstIndex < this.#queue.length) {
      const entry = this.#queue[this.#firstIndex] as Entry<Lock>;
      if (this.#dirty.get(entry.lock) === entry) break;
      this.#firstIndex += 1;
    }
    // Skipped entries are removed once they are more than half of the queue, so that removing them costs little each.
    if (this.#firstIndex * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#firstIndex);
      this.#firstIndex = 0;
    }
    return this.#firstIndex;
  }
}
