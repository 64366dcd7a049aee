/**
 * Pings first: while very many are being stored, attempts at webhooks begin at a pace that goes by the pings, however
 * many URLs there are. A ping waits for its acknowledgement with its lock's radio on, and locks that wait too long send
 * again; a webhook waits in the log, safe, and costs nothing there. Both have one thread, so without this a merchant
 * with five URLs would slow all locks down.
 *
 * What may begin is dealt anew with each commit, in turn, so that of many URLs none is left out.
 */
import { type Milliseconds, systemClock, type Timer } from '../../proto/clock.js';

/** A commit of so many uplinks says that they come faster than one by one: pings are what the thread is for then. */
const BUSY_FROM = 32;
/** For each commit then: an attempt for so many uplinks, of all URLs together, and so many attempts at the least. */
const UPLINKS_PER_ATTEMPT = 10;
const LEAST_ATTEMPTS = 16;
/** When no commit has come for so long, there is time for everything. In real time. */
const CALM_AFTER: Milliseconds = 50;

/** Who begins attempts, and waits where they are held back. */
export interface Paced {
  wake(): void;
}

export class Pace {
  /** How many attempts may begin before the next commit; infinite while pings are few. */
  #left = Number.POSITIVE_INFINITY;
  /** How many of them one URL may begin, and how many it has. */
  #share = Number.POSITIVE_INFINITY;
  #begun = new Map<Paced, number>();
  /** Those that were held back, the longest first: with nothing begun since the last commit, and with something. */
  #held = new Set<Paced>();
  #served = new Set<Paced>();
  #calm: Timer | undefined;

  /** How many attempts this one may begin now. Where there are none, it is woken when there are. */
  room(worker: Paced): number {
    const room = Math.min(this.#left, this.#share - (this.#begun.get(worker) ?? 0));
    if (room <= 0) (this.#begun.has(worker) ? this.#served : this.#held).add(worker);
    return room;
  }

  /** To be called as an attempt begins. */
  begin(worker: Paced): void {
    if (this.#left === Number.POSITIVE_INFINITY) return;
    this.#left -= 1;
    this.#begun.set(worker, (this.#begun.get(worker) ?? 0) + 1);
  }

  /** A commit stored so many uplinks. Wakes whoever was held back, the longest first. */
  stored(uplinks: number): void {
    this.#calm?.cancel();
    const isBusy = uplinks >= BUSY_FROM;
    if (isBusy) this.#calm = systemClock.after(CALM_AFTER, () => this.#deal(Number.POSITIVE_INFINITY));
    const dealt = Math.max(LEAST_ATTEMPTS, Math.ceil(uplinks / UPLINKS_PER_ATTEMPT));
    this.#deal(isBusy ? dealt : Number.POSITIVE_INFINITY);
  }

  /** Holds nobody back any more. */
  stop(): void {
    this.stored(0);
  }

  #deal(attempts: number): void {
    const held = new Set([...this.#held, ...this.#served]);
    this.#left = attempts;
    this.#share = Math.ceil(attempts / Math.max(held.size, 1));
    this.#begun.clear();
    this.#held.clear();
    this.#served.clear();
    for (const worker of held) worker.wake();
  }
}
