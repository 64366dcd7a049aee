/**
 * Limits how many locks of one process connect at the same time; the others wait their turn in order. Each lock
 * connects when its power model says so, but ten thousand that reconnect at once would overflow a gateway's accept
 * backlog, time out together and start again, for ever.
 */

/** A position in the queue, and then one of the concurrent attempts. */
export interface ConnectSlot {
  /** Frees it: the attempt is over, or no longer wanted. A second call does nothing. */
  release(): void;
}

export class ConnectQueue {
  readonly #maxConnecting: number;
  #connecting = 0;
  /** In order of arrival; released ones are removed. */
  readonly #waiting = new Set<() => void>();

  /** @param maxConnecting how many attempts may run at once */
  constructor(maxConnecting: number) {
    this.#maxConnecting = maxConnecting;
  }

  /** Calls `begin` when it is its turn: at once where there is room. */
  acquire(begin: () => void): ConnectSlot {
    let hasStarted = false;
    let isReleased = false;
    const start = (): void => {
      hasStarted = true;
      this.#connecting += 1;
      begin();
    };
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      if (!hasStarted) this.#waiting.delete(start);
      else {
        this.#connecting -= 1;
        this.#startNext();
      }
    };
    if (this.#connecting < this.#maxConnecting) start();
    else this.#waiting.add(start);
    return { release };
  }

  #startNext(): void {
    for (const start of this.#waiting) {
      if (this.#connecting >= this.#maxConnecting) return;
      this.#waiting.delete(start);
      start();
    }
  }
}
