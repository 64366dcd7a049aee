/**
 * Decides which batches of live events the worker sends to one tab. A browser may suspend a hidden tab for minutes:
 * then a few batches wait for the tab, and later events are only counted, so that memory is bounded. Does no I/O.
 */

/** Events of the gateway as JSON texts, oldest first, and how many were left out before them. */
export interface TailBatch {
  readonly events: readonly string[];
  readonly skipped: number;
}

/** While this many batches wait for the tab, further events are skipped. */
const MAX_WAITING_BATCHES = 8;

export class TailOutbox {
  #waitingBatches = 0;
  #skipped = 0;

  /** The batch to send now; null if the tab has too many waiting. */
  offer({ events, skipped }: TailBatch): TailBatch | null {
    if (this.#waitingBatches >= MAX_WAITING_BATCHES) {
      this.#skipped += events.length + skipped;
      return null;
    }
    const batch = { events, skipped: skipped + this.#skipped };
    this.#skipped = 0;
    this.#waitingBatches += 1;
    return batch;
  }

  /** The tab has taken a batch. */
  noteTaken(): void {
    this.#waitingBatches = Math.max(this.#waitingBatches - 1, 0);
  }
}
