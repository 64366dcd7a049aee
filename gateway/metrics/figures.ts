/** Reads figures about the store and the disk on demand, for a scrape of `/metrics` and for the operators' status. */
import { type Clock, type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Store } from '../store/contract/store.js';
import type { DiskSpace, StoreFigures, UrlBacklog } from '../store/contract/store-figures.js';
import type { Backlogs } from '../webhooks/backlogs.js';

/** How long a reading waits for delivery outcomes that are being stored, so that these deliveries count. */
const MAX_OUTCOME_WAIT: Milliseconds = Seconds(1);

/** The figures. A member that can't be read is undefined. */
export interface ReadFigures {
  readonly store: StoreFigures | undefined;
  readonly disk: DiskSpace | undefined;
  /**
   * The age of a URL's oldest event without an outcome, in ms by the run's clock (wall-clock time, except in a sped-up
   * simulation); null if it has none.
   */
  readonly oldestAgeMs: (backlog: UrlBacklog) => Milliseconds | null;
}

export interface FiguresParts {
  readonly backlogs: Backlogs;
  readonly store: Pick<Store, 'readDiskSpace'>;
  /** Resolves when the outcomes of all deliveries so far are in the store. */
  readonly outcomesStored: () => Promise<void>;
  /** Whether the store can't write. Then outcomes wait until it can, and the reading does not wait for them. */
  readonly isStoreFailing: () => boolean;
  /** Limits the wait for outcomes: real time. */
  readonly clock: Clock;
}

export class Figures {
  readonly #parts: FiguresParts;

  constructor(parts: FiguresParts) {
    this.#parts = parts;
  }

  /** Reads the current figures. Never rejects, so that scrapes work while the store or the disk fails. */
  async read(): Promise<ReadFigures> {
    const { backlogs, store: diskSource } = this.#parts;
    if (!this.#parts.isStoreFailing()) await this.#waitForOutcomes();
    const [store, disk] = await Promise.all([
      backlogs.read().catch(() => undefined),
      diskSource.readDiskSpace().catch(() => undefined),
    ]);
    return { store, disk, oldestAgeMs: (backlog) => backlogs.oldestAgeMs(backlog) };
  }

  async #waitForOutcomes(): Promise<void> {
    const { outcomesStored, clock } = this.#parts;
    await new Promise<void>((resolve) => {
      const timeout = clock.after(MAX_OUTCOME_WAIT, resolve);
      // If they can't be stored, the figures are read without them.
      void outcomesStored()
        .catch(() => undefined)
        .finally(() => {
          timeout.cancel();
          resolve();
        });
    });
  }
}
