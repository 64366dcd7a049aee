/**
 * The scans of the store (contract/merchants/uplink-scan.ts): adds a lock's newest uplinks, which only the memtable
 * (log/memtable/) has by lock, and picks the thread.
 */
import type { Database } from 'better-sqlite3';
import { StoreFailure } from '../../contract/errors.js';
import { DENSE_SLOT, idInSlot, positionAfter } from '../../contract/log/log-position.js';
import type {
  EventScan,
  PingScan,
  ScannedEvents,
  ScannedUplinks,
  ScanStore,
} from '../../contract/merchants/uplink-scan.js';
import type { UplinkMemtable } from '../log/memtable/uplink-memtable.js';
import { ScanQueue } from './scan-queue.js';
import { type ScanRequest, UplinkScanner } from './uplink-scanner.js';

export class Scans implements ScanStore {
  readonly #memtable: UplinkMemtable;
  readonly #scanner: UplinkScanner;
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
    this.#scanner = new UplinkScanner(reader);
    this.#queue = hasThread ? new ScanQueue(file, (request) => this.#scanner.scan(request)) : undefined;
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

  async #scan(
    action: string,
    merchantId: number,
    request: ScanRequest,
    signal: AbortSignal | undefined,
  ): Promise<ScannedUplinks> {
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
