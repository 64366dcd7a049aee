/**
 * Limits how many simulated locks of one process connect at the same time. The other locks wait in order of arrival.
 * Without the limit, ten thousand locks that reconnect at once would overflow the gateway's accept backlog, time out
 * together and start again, endlessly.
 */

/** A lock's place in the queue, and later its place among the concurrent attempts. */
export interface ConnectSlot {
  /** Frees the place when the attempt has finished or is no longer needed. A second call does nothing. */
  release(): void;
}

/** See the top of this file. */
export class ConnectQueue {
  readonly #maxConnecting: number;
  #connecting = 0;
  /** The start functions of the waiting attempts, in order of arrival. */
  readonly #waiting = new Set<() => void>();

  /** @param maxConnecting how many attempts may run at once */
  constructor(maxConnecting: number) {
    this.#maxConnecting = maxConnecting;
  }

  /** Calls `begin` when an attempt may start: at once if fewer than the maximum are running. */
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
