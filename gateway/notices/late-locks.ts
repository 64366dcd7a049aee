/**
 * Which locks are late, for notices. When a network fails, all of a fleet's locks are late within minutes; beyond a
 * number that somebody may still look at one by one, they share a notice, which lasts until none of them is late.
 */
import { OTHERS } from './pending-notices.js';

/** Locks that are late at once and have a notice each. */
export const LATE_EACH = 1_000;

export interface LateListener {
  /** `subject` is the lock's MAC, or {@link OTHERS}. */
  readonly note: (subject: string, text: string) => void;
  readonly end: (subject: string) => void;
}

export class LateLocks {
  readonly #listener: LateListener;
  readonly #each = new Set<string>();
  readonly #others = new Set<string>();
  /** The shared notice goes on, as far as the store knows, though none of its locks is known yet. */
  #isOthersOpen = false;

  constructor(listener: LateListener) {
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

  /** A lock is late, or is so by another rule. */
  late(mac: string, text: string): void {
    if (!this.#each.has(mac) && this.#each.size >= LATE_EACH) {
      if (this.#others.has(mac)) return;
      this.#others.add(mac);
      const more = `more than ${LATE_EACH.toLocaleString('en')} locks are late: device list shows each`;
      this.#listener.note(OTHERS, more);
      return;
    }
    this.#others.delete(mac);
    this.#each.add(mac);
    this.#listener.note(mac, text);
  }

  /** A lock is not late. */
  ended(mac: string): void {
    if (this.#each.delete(mac)) this.#listener.end(mac);
    else if (this.#others.delete(mac)) this.#endOthers();
  }

  /** Holds what is known against what is true: `now` are all locks that are late, with what to say of each. */
  compare(now: ReadonlyMap<string, string>): void {
    for (const mac of [...this.#each, ...this.#others]) if (!now.has(mac)) this.ended(mac);
    for (const [mac, text] of now) if (!this.#each.has(mac) && !this.#others.has(mac)) this.late(mac, text);
    if (this.#isOthersOpen) this.#endOthers();
  }

  #endOthers(): void {
    this.#isOthersOpen = false;
    if (this.#others.size === 0) this.#listener.end(OTHERS);
  }
}
