/**
 * The locks whose stored state is older than what is believed of them.
 *
 * The log is what is durable; a state is what judging the log came to. So a state need not be written with every uplink
 * of its lock: the uplinks after it are judged again when it is loaded. What bounds that work stands here. The
 * states are written in slices, a few with each commit, so that no commit has to carry them all.
 */
import { monotonicMs, Seconds } from '../../proto/clock.js';

/** What a stored state lacks is among so many of the newest uplinks, those of all locks together. */
export const MOST_DIRTY = 65_536;
/** The usual way is half of that: the slices are dealt so that all have their turn within so many uplinks. */
const UNSETTLED_USUALLY = MOST_DIRTY / 2;
/**
 * Where the oldest has waited for so long, in real time, a commit takes at least so many with it: after a quiet hour
 * little is left to be judged again. No more at once, since that holds up the pings that wait for the commit.
 */
const UNSETTLED_FOR = Seconds(10);
const THEN_AT_LEAST = 64;

interface Entry<Lock> {
  readonly lock: Lock;
  /** How many uplinks had been stored before the first that its stored state lacks, and when that was. */
  readonly uplinks: number;
  readonly atMs: number;
}

export class DirtyStates<Lock extends object> {
  /** The longest first; one whose lock has another entry, or none, by now is passed over. */
  #queue: Entry<Lock>[] = [];
  #first = 0;
  readonly #current = new Map<Lock, Entry<Lock>>();
  /** Of the states that are on their way to the disk. Their locks may have another entry since. */
  readonly #underWay = new Map<Lock, Entry<Lock>>();
  #uplinks = 0;

  /** How many there are. */
  get size(): number {
    return this.#current.size;
  }

  has(lock: Lock): boolean {
    return this.#current.has(lock) || this.#underWay.has(lock);
  }

  /** The lock's stored state lacks an uplink. */
  add(lock: Lock): void {
    if (this.#current.has(lock)) return;
    const entry = { lock, uplinks: this.#uplinks, atMs: monotonicMs() };
    this.#current.set(lock, entry);
    this.#queue.push(entry);
  }

  /** Its state is on the disk as it is believed, or it is no longer kept at all. */
  delete(lock: Lock): void {
    this.#current.delete(lock);
  }

  /**
   * The states of these are on their way to the disk as they are believed at this moment. What comes after it, they
   * lack; whether they get there, {@link stored} or {@link failed} says.
   */
  begin(locks: Iterable<Lock>): void {
    for (const lock of locks) {
      const entry = this.#current.get(lock);
      if (entry === undefined) continue;
      this.#current.delete(lock);
      this.#underWay.set(lock, entry);
    }
  }

  /** What was on its way did not get there: its locks stand where they stood. Nothing happens where nothing was. */
  failed(): void {
    if (this.#underWay.size === 0) return;
    const back = [...this.#underWay.values()].sort((a, b) => a.uplinks - b.uplinks);
    const others = this.#queue.slice(this.#first).filter(({ lock }) => !this.#underWay.has(lock));
    for (const entry of back) this.#current.set(entry.lock, entry);
    this.#queue = [...back, ...others];
    this.#first = 0;
    this.#underWay.clear();
  }

  /** So many uplinks are about to be stored: whose states shall go with them. */
  flushBatch(uplinks: number): Lock[] {
    const flushBatch: Lock[] = [];
    let share = Math.ceil((this.size * uplinks) / UNSETTLED_USUALLY);
    for (let at = this.#skip(); at < this.#queue.length; at++) {
      const entry = this.#queue[at] as Entry<Lock>;
      if (this.#current.get(entry.lock) !== entry) continue;
      if (flushBatch.length === 0 && monotonicMs() - entry.atMs > UNSETTLED_FOR) share = Math.max(share, THEN_AT_LEAST);
      const isLast = this.#uplinks + uplinks - entry.uplinks >= MOST_DIRTY;
      if (!isLast && flushBatch.length >= share) break;
      flushBatch.push(entry.lock);
    }
    return flushBatch;
  }

  /** So many uplinks were stored, and the states that were on their way with them. */
  stored(uplinks: number): void {
    this.#uplinks += uplinks;
    this.#underWay.clear();
  }

  /** Where the first entry stands that counts. */
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
