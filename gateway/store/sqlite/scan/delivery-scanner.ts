/**
 * Reads and counts deliveries of one webhook URL over one connection, in the thread of scan-thread.ts or in the
 * caller's. A page of deliveries or an hour's counts take milliseconds, and longer where the disk must be read; pings
 * should not wait for that.
 */
import type { Database } from 'better-sqlite3';
import type {
  AttemptedCounts,
  CountedRange,
  DeliveryFilter,
  DeliveryReading,
  PingCount,
} from '../../contract/webhook-store.js';
import { type AttemptFigures, type SummedAttempts, sumUpAttempts } from '../../contract/webhooks/attempt-figures.js';
import { DeliveryCounts } from '../tables/webhooks/delivery-counts.js';
import { PassingEvents } from '../tables/webhooks/passing-events.js';
import { DeliveryReader, type Gap, type UrlOfDeliveries } from '../tables/webhooks/webhook-rows.js';
import { type NewestUplinks, RequestedMemtable } from './requested-memtable.js';

/** Deliveries of one URL to read; of one lock if the filter names one, whose newest uplinks are then given. */
export interface DeliveryRequest extends NewestUplinks {
  readonly type: 'deliveries';
  readonly url: UrlOfDeliveries;
  readonly gaps: readonly Gap[];
  readonly filter: DeliveryFilter;
}

/**
 * The attempts at a URL's newest attempted events, to sum up here: the figures cross threads at once, attempts don't.
 */
export interface AttemptFiguresRequest {
  readonly type: 'attempt-figures';
  readonly urlId: number;
  readonly summed: SummedAttempts;
}

/** Deliveries, or the merchant's pings, to count in a slice of the log. */
export interface CountRequest {
  readonly type: 'count-attempted' | 'count-pings';
  readonly urlId: number;
  readonly range: CountedRange;
}

export class DeliveryScanner {
  readonly #memtable = new RequestedMemtable();
  readonly #deliveries: DeliveryReader;
  readonly #counts: DeliveryCounts;

  /** `db` is a reading connection. */
  constructor(db: Database) {
    this.#deliveries = new DeliveryReader(db, this.#memtable, new PassingEvents(db));
    this.#counts = new DeliveryCounts(db);
  }

  read(request: DeliveryRequest): DeliveryReading[] {
    this.#memtable.take(request);
    return this.#deliveries.read(request.url, request.gaps, request.filter);
  }

  sumUpNewestAttempts({ urlId, summed }: AttemptFiguresRequest): AttemptFigures {
    return sumUpAttempts(this.#deliveries.readNewestAttempts(urlId, summed.limit), summed.sinceMs);
  }

  countAttempted({ urlId, range }: CountRequest): AttemptedCounts {
    return this.#counts.attempted(urlId, range);
  }

  countPings({ urlId, range }: CountRequest): PingCount {
    return this.#counts.pings(urlId, range);
  }
}
