/**
 * Passes events through a filter, in order. Events that come while the filter reads the store wait, up to a limit.
 */
import type { EventJson } from '../../console/wording/event-text.js';
import type { EventFilter } from './event-filter.js';

/** Maximum number of events that wait for the filter; with more, the stream ends, as with a slow reader. */
const MAX_WAITING_EVENTS = 10_000;

export interface FilteredOutput {
  readonly write: (event: EventJson) => void;
  /** Ends the stream: the store can't be read, or too many events wait. */
  readonly abort: () => void;
}

export class FilteredEvents {
  readonly #filter: EventFilter;
  readonly #output: FilteredOutput;
  #waiting: EventJson[] = [];
  #isFiltering = false;

  constructor(filter: EventFilter, output: FilteredOutput) {
    this.#filter = filter;
    this.#output = output;
  }

  add(event: EventJson): void {
    if (this.#waiting.length >= MAX_WAITING_EVENTS) {
      this.#output.abort();
      return;
    }
    this.#waiting.push(event);
    if (this.#isFiltering) return;
    this.#isFiltering = true;
    void this.#filterWaiting().catch(this.#output.abort);
  }

  async #filterWaiting(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const events = this.#waiting;
        this.#waiting = [];
        for (const event of await this.#filter(events)) this.#output.write(event);
      }
    } finally {
      this.#isFiltering = false;
    }
  }
}
