/**
 * The scans of the store (contract/merchants/uplink-scan.ts): adds a lock's newest uplinks, those above `indexedId`,
 * which only the memtable in memory (log/memtable/) has by lock, and picks the thread.
 */
import type { Database, Statement } from 'better-sqlite3';
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
  readonly #merchantOf: Statement;
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
    this.#merchantOf = reader.prepare('SELECT merchant_id FROM device WHERE id = ?').pluck();
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
   * Reads a part of a lock's log from a place on; less than `limit` entries at its end.
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
    // Whoever reads a lock's log takes the turn of its merchant; 0 is no merchant, for a lock that does not exist.
    const merchantId = (this.#merchantOf.get(deviceId) as number | undefined) ?? 0;
    return await this.#scan('read the log', merchantId, { type: 'log', ...terms }, undefined);
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
