/**
 * Who may connect next, where very many locks live in one process: some hundred at a time, the others in the order in
 * which they came. Each connects by itself as its power model says; but ten thousand that come back at once would stand
 * before a gateway for longer than any of them waits, time out together, and begin anew, for ever.
 */

/** Somebody's place in the queue, and then at the door. */
export interface Place {
  /** Gives it up: the try is over, well or badly, or nobody wants it any more. Doing so twice does nothing. */
  leave(): void;
}

export class ConnectQueue {
  readonly #most: number;
  #under = 0;
  /** In order; those who left are taken out. */
  readonly #waiting = new Set<() => void>();

  /** @param most how many may be under way at once */
  constructor(most: number) {
    this.#most = most;
  }

  /** Calls `begin` when it is its turn: at once where there is room. */
  enter(begin: () => void): Place {
    let hasBegun = false;
    let hasLeft = false;
    const start = (): void => {
      hasBegun = true;
      this.#under += 1;
      begin();
    };
    const leave = (): void => {
      if (hasLeft) return;
      hasLeft = true;
      if (!hasBegun) this.#waiting.delete(start);
      else {
        this.#under -= 1;
        this.#callNext();
      }
    };
    if (this.#under < this.#most) start();
    else this.#waiting.add(start);
    return { leave };
  }

  #callNext(): void {
    for (const start of this.#waiting) {
      if (this.#under >= this.#most) return;
      this.#waiting.delete(start);
      start();
    }
  }
}
