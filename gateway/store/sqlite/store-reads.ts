/**
 * The store's reads, on the connection that only reads: the log, deliveries, locks, merchants. They never write, and no
 * read sees a part of a transaction. SqliteStore adds the writes.
 */
import type { Database } from 'better-sqlite3';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { LockAccount, StoredState } from '../contract/devices/device.js';
import type { MarkStore } from '../contract/devices/mark-store.js';
import { StoreFailure } from '../contract/errors.js';
import type { CommitSpacing } from '../contract/log/commit-spacing.js';
import type { LogEntry, StoredFinding } from '../contract/log/log-entry.js';
import { DENSE_SLOT, idInSlot, type LogPosition } from '../contract/log/log-position.js';
import type { StoredUplink } from '../contract/log/stored-uplink.js';
import type { Quota } from '../contract/merchants/quota.js';
import type { DiskSpace, StoreFigures } from '../contract/store-figures.js';
import type { DueDelivery } from '../contract/webhooks/delivery.js';
import type { WebhookUrl } from '../contract/webhooks/webhook-url.js';
import { latestByLife } from '../tables/devices/latest-by-life.js';
import { Marks } from '../tables/devices/marks.js';
import { Kysely, SqliteDialect } from '../tables/kysely.js';
import type { Tables } from '../tables/schema.js';
import { TableReads } from '../tables/table-reads.js';
import { readDiskSpace } from './figures/disk-space.js';
import type { InlineFigures } from './figures/figures-count.js';
import type { FiguresThread } from './figures/figures-in-thread.js';
import type { DataLock } from './folder/data-lock.js';
import type { LogBackend } from './log/log-backend.js';
import { LogMerge } from './log/log-merge.js';
import { LogReader } from './log/log-reader.js';
import { UplinkLookup } from './log/uplink-lookup.js';
import type { Scans } from './scan/scans.js';
import { withStatementCache } from './statement-cache.js';
import { SQLITE } from './tables/sqlite-dialect.js';
import { DueDeliveries } from './tables/webhooks/due-deliveries.js';
import { UrlRows } from './tables/webhooks/url-rows.js';
import { WriteMutex } from './write-mutex.js';

/**
 * How many of a lock's last received uplinks are searched for its latest uplinks, in addition to the index by key. A
 * reflash starts a new life of the lock, in which its keys (boot and sequence) start again, so the highest keys may be
 * of an earlier life (mark-store.ts).
 */
const MAX_RECENT_BY_LIFE = 1_000;

/** The opened parts of the store, which the store closes. */
export interface StoreParts {
  readonly file: string;
  /** The lock on the data folder. */
  readonly lock: DataLock;
  readonly writer: Database;
  readonly reader: Database;
  readonly tables: Kysely<Tables>;
  readonly log: LogBackend;
  readonly figures: FiguresThread | InlineFigures;
  readonly scans: Scans;
  readonly quota: Quota;
}

/**
 * One commit every 4 ms. From 8,000 pings a second on, most commits gather 32 items within that time. A smaller number
 * costs more CPU time; with 24 to 40 PUBACKs take equally long, with 12 they vary more (docs/decisions.md, 2026-11-30).
 */
const COMMIT_SPACING: CommitSpacing = { commitsPerSecond: 250, minSharingItems: 32 };

/** Reads of a store: the methods of the contract that change nothing. */
export class StoreReads extends TableReads {
  /** The engine and the location, for log messages. */
  readonly description: string;
  readonly commitSpacing = COMMIT_SPACING;
  readonly marks: MarkStore;
  protected readonly parts: StoreParts;
  protected readonly mutex: WriteMutex;
  /** Statements of Kysely on the connection that only reads. */
  protected readonly readTables: Kysely<Tables>;
  protected readonly log: LogReader;
  protected readonly lookup: UplinkLookup;
  readonly #due: DueDeliveries;
  readonly #urls: UrlRows;

  constructor(parts: StoreParts) {
    const dialect = new SqliteDialect({ database: withStatementCache(parts.reader) });
    const readTables = new Kysely<Tables>({ dialect });
    super(readTables, SQLITE);
    this.description = `SQLite, ${parts.file}`;
    this.parts = parts;
    this.mutex = new WriteMutex((isHurried) => parts.log.hurry(isHurried));
    this.readTables = readTables;
    this.log = new LogReader(parts.reader, parts.log.recent);
    this.lookup = new UplinkLookup(parts.reader, parts.log.memtable);
    this.#due = new DueDeliveries(parts.reader);
    this.#urls = new UrlRows(readTables);
    this.marks = new Marks({
      mutex: this.mutex,
      tables: parts.tables,
      readTables,
      dialect: SQLITE,
    });
  }

  async readFigures(): Promise<StoreFigures> {
    return await this.parts.figures.read();
  }

  readDiskSpace(): Promise<DiskSpace> {
    return readDiskSpace(this.parts.file);
  }

  async readDeviceState(deviceId: number): Promise<string | null> {
    return this.#read('read a device', () => this.log.readState(deviceId));
  }

  async readDeviceStates(deviceIds?: readonly number[]): Promise<StoredState[]> {
    return this.#read('read the devices', () => this.log.readStates(deviceIds));
  }

  async readDigests(credentialId: number, boot: number, sequence: number): Promise<Buffer[]> {
    return this.#read('look up an uplink', () => this.lookup.findDigests(credentialId, boot, sequence));
  }

  readFindings(deviceId: number, limit: number, beforeId?: number): Promise<StoredFinding[]> {
    return this.parts.scans.readFindings(deviceId, limit, beforeId);
  }

  async *readLog(deviceId: number, limit: number): AsyncGenerator<LogEntry[]> {
    const merge = new LogMerge(this.log, this.lookup.ofLock, deviceId, limit);
    const next = (): LogEntry[] => this.#read('read the log', () => merge.next());
    for (let chunk = next(); chunk.length > 0; chunk = next()) yield chunk;
  }

  /** As {@link readLog}, for a caller that reads on when it likes. */
  readLogChunks(deviceId: number, limit: number): { next(): Promise<LogEntry[]> } {
    const merge = new LogMerge(this.log, this.lookup.ofLock, deviceId, limit);
    return { next: async () => this.#read('read the log', () => merge.next()) };
  }

  /** See the contract: of the newest `maxUplinks` uplinks of the log, those that no stored state of a lock includes. */
  async *readUplinksAfterStates(
    maxUplinks: number,
    limit: number,
    deviceIds?: readonly number[],
  ): AsyncGenerator<StoredUplink[]> {
    let afterId = this.#read('read the log', () => this.log.findIdBeforeStates(maxUplinks, deviceIds));
    for (;;) {
      const chunk = this.#read('read the log', () => this.log.readUplinksAfterStates(afterId, limit, deviceIds));
      const last = chunk.at(-1);
      if (last === undefined) return;
      yield chunk;
      afterId = last.id;
    }
  }

  async findLock(mac: Mac, kind: Source = 'lock'): Promise<LockAccount | null> {
    return this.#read('look up a lock', () => this.log.findLock(mac, kind));
  }

  async readEvents(
    merchantId: number,
    after: LogPosition,
    limit: number,
    kinds: 'pings' | 'all' = 'pings',
  ): Promise<StoredUplink[]> {
    // A position has an id for each gateway that writes the log ("slot"); on SQLite there is only one.
    const afterId = idInSlot(after, DENSE_SLOT);
    return this.#read('read events', () => this.log.readEvents(merchantId, afterId, limit, kinds));
  }

  async readOutcomesAfter(urlId: number, after: LogPosition): Promise<number[]> {
    const afterId = idInSlot(after, DENSE_SLOT);
    return this.#read('read deliveries', () => this.log.readOutcomesAfter(urlId, afterId));
  }

  async readDueDeliveries(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]> {
    return this.#read('read deliveries', () => this.#due.read(urlId, nowMs, limit));
  }

  async nextDueAtMs(urlId: number, except: ReadonlySet<number> = new Set()): Promise<number | null> {
    return this.#read('read deliveries', () => this.#due.nextAtMs(urlId, except));
  }

  async readLastReceivedAtMs(): Promise<number | null> {
    return this.#read('read the log', () => this.log.readLastReceivedAtMs());
  }

  async readUplinks(deviceId: number, limit: number, source: Source = 'lock'): Promise<StoredUplink[]> {
    const credentials = await this.credentialReads.readCredentialIds(deviceId, source);
    const marks = source === 'lock' ? await this.marks.read(deviceId) : [];
    return this.#read('read uplinks', () => {
      const latest = this.lookup.readLatest(credentials, limit);
      if (marks.length === 0) return latest;
      const recent = this.lookup.ofLock.readRecent(deviceId, MAX_RECENT_BY_LIFE);
      return latestByLife([...latest, ...recent], credentials, marks).slice(0, limit);
    });
  }

  listWebhookUrls(): Promise<WebhookUrl[]> {
    return this.#urls.listWebhookUrls();
  }

  /** Runs a read. @param action completes a failure's message "the store could not …" */
  #read<T>(action: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new StoreFailure(action, error);
    }
  }
}
