/**
 * Notices of one kind about locks. When a network fails, all of a fleet's locks are late within minutes; beyond a
 * number that somebody may still look at one by one, they share a notice, which lasts until none of them is in it.
 */
import { OTHERS } from './pending-notices.js';

/** Locks that have a notice of one kind each, at the same time. */
export const LOCKS_EACH = 1_000;

export interface LockNoticesListener {
  /** `subject` is the lock's MAC, or {@link OTHERS}. */
  readonly note: (subject: string, text: string) => void;
  readonly end: (subject: string) => void;
}

export class LockNotices {
  readonly #listener: LockNoticesListener;
  readonly #many: string;
  readonly #each = new Set<string>();
  readonly #others = new Set<string>();
  /** The shared notice goes on, as far as the store knows, though none of its locks is known yet. */
  #isOthersOpen = false;

  /** `many` says what is so of the locks that share a notice, for people: as `locks are late`. */
  constructor(many: string, listener: LockNoticesListener) {
    this.#many = many;
    this.#listener = listener;
  }

  /** Whether there is anything that could end. */
  get isEmpty(): boolean {
    return this.#each.size === 0 && this.#others.size === 0 && !this.#isOthersOpen;
  }

  /** A notice of an earlier life goes on. */
  resume(subject: string): void {
    if (subject === OTHERS) this.#isOthersOpen = true;
    else this.#each.add(subject);
  }

  /** It is so of a lock, or is still so for another reason. */
  begin(mac: string, text: string): void {
    if (!this.#each.has(mac) && this.#each.size >= LOCKS_EACH) {
      if (this.#others.has(mac)) return;
      this.#others.add(mac);
      this.#listener.note(OTHERS, `more than ${LOCKS_EACH.toLocaleString('en')} ${this.#many}`);
      return;
    }
    this.#others.delete(mac);
    this.#each.add(mac);
    this.#listener.note(mac, text);
  }

  /** It is not so of a lock, if it ever was. */
  end(mac: string): void {
    if (this.#each.delete(mac)) this.#listener.end(mac);
    else if (this.#others.delete(mac)) this.#endOthers();
  }

  /** Holds what is known against what is true: `now` are all locks of which it is so, with what to say of each. */
  compare(now: ReadonlyMap<string, string>): void {
    for (const mac of [...this.#each, ...this.#others]) if (!now.has(mac)) this.end(mac);
    for (const [mac, text] of now) if (!this.#each.has(mac) && !this.#others.has(mac)) this.begin(mac, text);
    if (this.#isOthersOpen) this.#endOthers();
  }

  #endOthers(): void {
    this.#isOthersOpen = false;
    if (this.#others.size === 0) this.#listener.end(OTHERS);
  }
}
