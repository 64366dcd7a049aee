/** Figures that have to be asked for: what a scrape of `/metrics` and the operator's status have in common. */
import { type Clock, type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Store } from '../store/contract/store.js';
import type { DiskSpace, StoreFigures, UrlBacklog } from '../store/contract/store-figures.js';
import type { Backlogs } from '../webhooks/backlogs.js';

/** So long a question waits for deliveries that are being noted, so that they count as delivered. */
const SETTLE_AT_MOST: Milliseconds = Seconds(1);

/** What was asked for. A part that can't be read just now is left out. */
export interface ReadFigures {
  readonly store: StoreFigures | undefined;
  readonly disk: DiskSpace | undefined;
  /** The age of a URL's oldest event without an outcome, in ms by the run's clock; null where there is none. */
  readonly oldestAgeMs: (backlog: UrlBacklog) => Milliseconds | null;
}

export interface FiguresParts {
  readonly backlogs: Backlogs;
  readonly store: Pick<Store, 'readDiskSpace'>;
  /** Resolves when what came of deliveries so far is in the store. */
  readonly settled: () => Promise<void>;
  /** Whether the store can't write: what came of deliveries waits until it can, and nobody waits for that. */
  readonly isStoreFailing: () => boolean;
  readonly clock: Clock;
}

export class Figures {
  readonly #parts: FiguresParts;

  constructor(parts: FiguresParts) {
    this.#parts = parts;
  }

  /** As of now. It never rejects: scrapes go on while the store or the disk fails. */
  async read(): Promise<ReadFigures> {
    const { backlogs, store: measured } = this.#parts;
    if (!this.#parts.isStoreFailing()) await this.#settled();
    const [store, disk] = await Promise.all([
      backlogs.read().catch(() => undefined),
      measured.readDiskSpace().catch(() => undefined),
    ]);
    return { store, disk, oldestAgeMs: (backlog) => backlogs.oldestAgeMs(backlog) };
  }

  async #settled(): Promise<void> {
    const { settled, clock } = this.#parts;
    await new Promise<void>((resolve) => {
      const limit = clock.after(SETTLE_AT_MOST, resolve);
      void settled()
        .catch(() => undefined)
        .finally(() => {
          limit.cancel();
          resolve();
        });
    });
  }
}
