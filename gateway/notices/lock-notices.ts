/**
 * Tracks the notices of one kind about locks. When a network fails, all locks of a fleet are late within minutes. So
 * the first locks get a notice each, and all further locks share one, which stays open until no lock shares it.
 */
import { OTHERS } from './pending-notices.js';

/** Maximum number of locks that have their own notice of one kind at the same time. */
export const MAX_SINGLE_NOTICES = 1_000;

export interface LockNoticesListener {
  /** Opens a notice, or changes its text. `subject` is the lock's MAC, or {@link OTHERS} for the shared notice. */
  readonly note: (subject: string, text: string) => void;
  /** The notice is resolved. */
  readonly close: (subject: string) => void;
}

export class LockNotices {
  readonly #listener: LockNoticesListener;
  readonly #sharedText: string;
  /** The MACs of locks with their own notice. */
  readonly #single = new Set<string>();
  /** The MACs of locks that share a notice. */
  readonly #sharing = new Set<string>();
  /** The shared notice is open in the store from an earlier run, and its locks are not known yet. */
  #isSharedOpen = false;

  /** @param sharedText the end of the shared notice's text, after "more than 1,000": "locks are late" */
  constructor(sharedText: string, listener: LockNoticesListener) {
    this.#sharedText = sharedText;
    this.#listener = listener;
  }

  /** Whether no notice is open. */
  get isEmpty(): boolean {
    return this.#single.size === 0 && this.#sharing.size === 0 && !this.#isSharedOpen;
  }

  /** Takes over an open notice of an earlier run. */
  resume(subject: string): void {
    if (subject === OTHERS) this.#isSharedOpen = true;
    else this.#single.add(subject);
  }

  /** Opens a lock's notice, or changes its text. */
  open(mac: string, text: string): void {
    if (!this.#single.has(mac) && this.#single.size >= MAX_SINGLE_NOTICES) {
      if (this.#sharing.has(mac)) return;
      this.#sharing.add(mac);
      this.#listener.note(OTHERS, `more than ${MAX_SINGLE_NOTICES.toLocaleString('en')} ${this.#sharedText}`);
      return;
    }
    this.#sharing.delete(mac);
    this.#single.add(mac);
    this.#listener.note(mac, text);
  }

  /** Closes a lock's notice, if it has one. */
  close(mac: string): void {
    if (this.#single.delete(mac)) this.#listener.close(mac);
    else if (this.#sharing.delete(mac)) this.#closeShared();
  }

  /** Forgets a lock without resolving its notice, which another gateway resolves. */
  forget(mac: string): void {
    this.#single.delete(mac);
    this.#sharing.delete(mac);
  }

  /** Opens and closes notices so that exactly the locks of `textByMac` have one, with these texts. */
  reconcile(textByMac: ReadonlyMap<string, string>): void {
    for (const mac of [...this.#single, ...this.#sharing]) if (!textByMac.has(mac)) this.close(mac);
    for (const [mac, text] of textByMac) if (!this.#single.has(mac) && !this.#sharing.has(mac)) this.open(mac, text);
    // The locks above now share it instead of the unknown locks of the earlier run.
    if (this.#isSharedOpen) this.#closeShared();
  }

  /** Resolves the shared notice, unless a lock still shares it. */
  #closeShared(): void {
    this.#isSharedOpen = false;
    if (this.#sharing.size === 0) this.#listener.close(OTHERS);
  }
}
