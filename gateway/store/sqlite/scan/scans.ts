/**
 * The scans of the store (contract/merchants/uplink-scan.ts): adds a lock's newest uplinks, those above `indexedId`,
 * which only the memtable in memory (log/memtable/) has by lock, and picks the thread.
 */
import type { Database, Statement } from 'better-sqlite3';
import { StoreFailure } from '../../contract/errors.js';
import type { StoredFinding } from '../../contract/log/log-entry.js';
import { DENSE_SLOT, idInSlot, positionAfter } from '../../contract/log/log-position.js';
import type {
  EventScan,
  PingScan,
  ScannedEvents,
  ScannedUplinks,
  ScanStore,
} from '../../contract/merchants/uplink-scan.js';
import type {
  AttemptedCounts,
  CountedRange,
  DeliveryFilter,
  DeliveryReading,
  PingCount,
} from '../../contract/webhook-store.js';
import type { AttemptFigures, SummedAttempts } from '../../contract/webhooks/attempt-figures.js';
import type { WebhookUrl } from '../../contract/webhooks/webhook-url.js';
import type { UplinkMemtable } from '../log/memtable/uplink-memtable.js';
import type { Gap } from '../tables/webhooks/webhook-rows.js';
import type { LogPart, LogPlace } from './log-scanner.js';
import { ScanQueue } from './scan-queue.js';
import { Scanner, type ScanRequest, type ScanResult } from './scanner.js';

/** Which part of a lock's log is read. */
export interface LogPartTerms {
  /** Maximum number of entries that are read. */
  readonly limit: number;
  /** The last uplink that is read, with the connection events up to the next one; by default the newest. */
  readonly throughUplinkId?: number | undefined;
  /** Whether uplinks that repeat the one before are left out (log/state-changes.ts). */
  readonly changesOnly: boolean;
}

export class Scans implements ScanStore {
  readonly #memtable: UplinkMemtable;
  readonly #scanner: Scanner;
  readonly #lockOwner: Statement;
  readonly #urlOwner: Statement;
  readonly #queue: ScanQueue | undefined;

  /** @param parts `hasThread`: whether a separate thread scans */
  constructor(parts: {
    readonly file: string;
    readonly reader: Database;
    readonly memtable: UplinkMemtable;
    readonly hasThread: boolean;
  }) {
    const { file, reader, memtable, hasThread } = parts;
    this.#memtable = memtable;
    this.#scanner = new Scanner(reader);
    this.#lockOwner = reader.prepare('SELECT merchant_id FROM device WHERE id = ?').pluck();
    this.#urlOwner = reader.prepare('SELECT merchant_id FROM webhook_url WHERE id = ?').pluck();
    this.#queue = hasThread ? new ScanQueue(file, this.#scanner) : undefined;
  }

  pings({ merchantId, signal, deviceId, filter, limit, maxExamined, ...scan }: PingScan): Promise<ScannedUplinks> {
    const { beforeId = Number.MAX_SAFE_INTEGER } = scan;
    const { indexedId } = this.#memtable;
    const newerIds = this.#memtable.idsOf(deviceId, indexedId);
    const terms = { deviceId, beforeId, indexedId, newerIds, filter, limit, maxExamined };
    return this.#scan('read pings', merchantId, { type: 'pings', ...terms }, signal);
  }

  async events({ merchantId, signal, after, filter, limit, maxExamined }: EventScan): Promise<ScannedEvents> {
    const terms = { merchantId, afterId: idInSlot(after, DENSE_SLOT), filter, limit, maxExamined };
    // Scans of events have no `lastReceivedAtMs`.
    const {
      lastId,
      lastReceivedAtMs: _unused,
      ...found
    } = await this.#scan('read events', merchantId, { type: 'events', ...terms }, signal);
    return { ...found, end: lastId === null ? after : positionAfter(lastId) };
  }

  /**
   * Reads a part of a lock's log from a place on; fewer than `limit` entries at its end.
   *
   * @throws StoreFailure
   */
  async readLog(
    deviceId: number,
    start: LogPlace,
    { limit, throughUplinkId = Number.MAX_SAFE_INTEGER, changesOnly }: LogPartTerms,
  ): Promise<LogPart> {
    // To the scan, the log ends with the last uplink that is asked for.
    const indexedId = Math.min(this.#memtable.indexedId, throughUplinkId);
    const lastId = Math.min(this.#memtable.lastId, throughUplinkId);
    const newerIds = this.#memtable.idsOf(deviceId, indexedId).filter((id) => id <= throughUplinkId);
    const terms = { deviceId, start, indexedId, lastId, newerIds, limit, changesOnly };
    return await this.#scan('read the log', this.#merchantOfLock(deviceId), { type: 'log', ...terms }, undefined);
  }

  /** See the contract's `readFindings`. */
  readFindings(deviceId: number, limit: number, beforeId?: number): Promise<StoredFinding[]> {
    const request = { type: 'findings', deviceId, limit, beforeId } as const;
    return this.#scan('read findings', this.#merchantOfLock(deviceId), request, undefined);
  }

  /** Returns the newest deliveries of one URL that match the filter, with their attempts. */
  readDeliveries(url: WebhookUrl, gaps: readonly Gap[], filter: DeliveryFilter): Promise<DeliveryReading[]> {
    const { id, merchantId, state, cursor, startedAfter, filter: ofUrl, wasFiltered } = url;
    const { indexedId, lastId } = this.#memtable;
    const newerIds = filter.deviceId === undefined ? [] : this.#memtable.idsOf(filter.deviceId, indexedId);
    const request = {
      type: 'deliveries',
      url: { id, merchantId, state, cursor, startedAfter, filter: ofUrl, wasFiltered },
      gaps,
      filter,
      indexedId,
      newerIds,
      lastId,
    } as const;
    return this.#scan('read deliveries', merchantId, request, undefined);
  }

  sumUpNewestAttempts(urlId: number, summed: SummedAttempts): Promise<AttemptFigures> {
    const request = { type: 'attempt-figures', urlId, summed } as const;
    return this.#scan('read deliveries', this.#merchantOfUrl(urlId), request, undefined);
  }

  countAttempted(urlId: number, range: CountedRange): Promise<AttemptedCounts> {
    const request = { type: 'count-attempted', urlId, range } as const;
    return this.#scan('count deliveries', this.#merchantOfUrl(urlId), request, undefined);
  }

  countPings(urlId: number, range: CountedRange): Promise<PingCount> {
    const request = { type: 'count-pings', urlId, range } as const;
    return this.#scan('count deliveries', this.#merchantOfUrl(urlId), request, undefined);
  }

  /** The merchant whose turn a scan of a lock takes; 0 is no merchant, for a lock that does not exist. */
  #merchantOfLock(deviceId: number): number {
    return (this.#lockOwner.get(deviceId) as number | undefined) ?? 0;
  }

  /** As {@link #merchantOfLock}, for a webhook URL. */
  #merchantOfUrl(urlId: number): number {
    return (this.#urlOwner.get(urlId) as number | undefined) ?? 0;
  }

  async #scan<R extends ScanRequest>(
    action: string,
    merchantId: number,
    request: R,
    signal: AbortSignal | undefined,
  ): Promise<ScanResult<R>> {
    signal?.throwIfAborted();
    try {
      return this.#queue === undefined
        ? this.#scanner.scan(request)
        : await this.#queue.scan(merchantId, request, signal);
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new StoreFailure(action, error);
    }
  }

  /** Resolves when the thread has closed its file. */
  async close(): Promise<void> {
    await this.#queue?.close();
  }
}
