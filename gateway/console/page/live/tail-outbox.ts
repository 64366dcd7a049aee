/**
 * What the worker has for one tab of the live events. A hidden tab may not run for minutes: then a few batches wait for
 * it, and the events after them are only counted, so that neither the worker nor the browser fills up. Pure.
 */

/** Events of the gateway as JSON texts, oldest first, and how many were left out before them. */
export interface TailBatch {
  readonly events: readonly string[];
  readonly skipped: number;
}

/** The number of batches that the tab has not taken yet; with as many, further events are skipped. */
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
