/**
 * The embedded engine: one SQLite file through better-sqlite3, in WAL mode (write-ahead log: SQLite appends changes to
 * a second file, and checkpoints copy them into the first) with synchronous FULL.
 *
 * One connection writes and one only reads (store-reads.ts), so that a read never sees a part of a transaction; the log
 * thread, if used, has a third connection. A mutex serialises writes, so that no write waits inside SQLite. The two hot
 * paths are hand-written SQL (log/log-writer.ts, log/log-reader.ts); other statements go through Kysely.
 *
 * A write goes one of two ways through the mutex. `runLog` hands to the log's writer what it alone may write, and the
 * writes that share commits with uplinks (log/batched-write.ts); several such calls run at once. `runExclusive` runs
 * every other write in this thread, on the writing connection, alone.
 */
import type { Statement } from 'better-sqlite3';
import type { Mac } from '../../../proto/wire/mac.js';
import type { AgingChunk, AgingResult, Erased } from '../contract/deletion.js';
import type {
  Device,
  DeviceChange,
  DeviceReading,
  NewDevice,
  NewPhone,
  Phone,
  ReplacedCredentials,
} from '../contract/devices/device.js';
import { StoreFailure } from '../contract/errors.js';
import { type Commit, EMPTY_COMMIT } from '../contract/log/commit.js';
import { ALL_RECORDED, type CommitResult, type ProgressResult } from '../contract/log/commit-result.js';
import { DENSE_SLOT, idInSlot } from '../contract/log/log-position.js';
import type { Merchant } from '../contract/merchants/merchant-store.js';
import type { DescribeLock } from '../contract/merchants/merchant-write.js';
import type { Store } from '../contract/store.js';
import type { StoreCopy } from '../contract/store-copy.js';
import type { DeliveryProgress } from '../contract/webhooks/delivery.js';
import type { NewWebhookUrl, WebhookUrl } from '../contract/webhooks/webhook-url.js';
import { packCommit } from '../log/packed-commit.js';
import { SOLE_OWNER } from '../log/sole-owner.js';
import { CredentialTables } from '../tables/devices/credentials.js';
import { DeviceTables } from '../tables/devices/devices.js';
import type { WriteForMerchant } from '../tables/merchant-refusals.js';
import { Registry } from '../tables/registry.js';
import { LiveCopies } from './backup/live-copy.js';
import { sumClosedFile } from './closed-file.js';
import { Deletion } from './deletion.js';
import { inTransaction } from './durable-file.js';
import { truncateWal, unmarkRunning } from './folder/wal-presence.js';
import type { BatchedWrite } from './log/batched-write.js';
import type { LogBackend } from './log/log-backend.js';
import { type StoreParts, StoreReads } from './store-reads.js';
import { SQLITE } from './tables/sqlite-dialect.js';
import { makeTableStores } from './tables/table-stores.js';
import { UrlRows } from './tables/webhooks/url-rows.js';

/**
 * A store that closes with more uplinks than this in its memtable (the part of the log's indexes that is held in
 * memory) flushes the memtable first.
 */
const MAX_UPLINKS_IN_MEMTABLE_AT_CLOSE = 5000;

/** The store: its reads, with the writes. Build it with `openSqliteStore`. */
export class SqliteStore extends StoreReads implements Store {
  readonly commands: Store['commands'];
  readonly usage: Store['usage'];
  readonly webhooks: Store['webhooks'];
  readonly access: Store['access'];
  readonly people: Store['people'];
  readonly merchants: Store['merchants'];
  readonly invitations: Store['invitations'];
  readonly secrets: Store['secrets'];
  readonly notices: Store['notices'];
  readonly notifications: Store['notifications'];
  readonly why: Store['why'];
  readonly scans: Store['scans'];
  readonly audit: Store['audit'];
  readonly refusals: Store['refusals'];
  readonly operatorTokens: Store['operatorTokens'];
  readonly consoleSessions: Store['consoleSessions'];
  readonly ownership = SOLE_OWNER;
  readonly #deletion: Deletion;
  readonly #registry: Registry;
  readonly #urls: UrlRows;
  readonly #devices: DeviceTables;
  readonly #credentials: CredentialTables;
  readonly #writeForMerchant: WriteForMerchant;
  readonly #copies: LiveCopies;
  readonly #findStagedEvent: Statement;

  constructor(parts: StoreParts) {
    super(parts);
    this.#copies = new LiveCopies(parts.file);
    this.#deletion = new Deletion(parts.writer);
    this.#registry = new Registry(parts.tables);
    this.#urls = new UrlRows(parts.tables);
    this.#devices = new DeviceTables(parts.tables, SQLITE);
    this.#credentials = new CredentialTables(parts.tables);
    this.#findStagedEvent = parts.reader.prepare('SELECT 1 FROM staged_event LIMIT 1');
    this.#writeForMerchant = (action, operation) =>
      this.#writeLog(action, () => (log) => log.writeForMerchant({ type: 'merchant', operation }));
    const { mutex, readTables, lookup } = this;
    const stores = makeTableStores({
      ...parts,
      mutex,
      readTables,
      lookup,
      write: this.#writeForMerchant,
      writeBatched: (action, write) => this.#writeBatched(action, write),
      onCommandEnded: () => this.moveStagedEvents(),
    });
    this.commands = stores.commands;
    this.usage = stores.usage;
    this.webhooks = stores.webhooks;
    this.access = stores.access;
    this.people = stores.people;
    this.merchants = stores.merchants;
    this.invitations = stores.invitations;
    this.secrets = stores.secrets;
    this.notices = stores.notices;
    this.notifications = stores.notifications;
    this.why = stores.why;
    this.scans = parts.scans;
    this.audit = stores.audit;
    this.refusals = stores.refusals;
    this.operatorTokens = stores.operatorTokens;
    this.consoleSessions = stores.consoleSessions;
  }

  append(commit: Commit): Promise<CommitResult> {
    return this.#writeLog('append', () => {
      const packed = packCommit(commit);
      return (log) => log.append(packed);
    });
  }

  /**
   * Moves staged events into the log. When a command ends, a trigger stages the merchant's event in `staged_event`
   * (migration 0029), since only the log's writer adds to the log. Each append moves them; this one does nothing else.
   * If it fails, a later one moves them.
   */
  async moveStagedEvents(): Promise<void> {
    if (this.#findStagedEvent.get() === undefined) return;
    await this.append(EMPTY_COMMIT).catch(() => undefined);
  }

  async recordProgress(progress: readonly DeliveryProgress[]): Promise<ProgressResult> {
    // This engine's ids are all in one slot, so the id in that slot is the whole cursor.
    const withCursorIds = progress.map((each) => ({
      ...each,
      cursor: each.cursor && idInSlot(each.cursor, DENSE_SLOT),
    }));
    await this.#writeBatched('record deliveries', { type: 'progress', progress: withCursorIds });
    return ALL_RECORDED;
  }

  #writeBatched(action: string, write: BatchedWrite): Promise<void> {
    return this.#writeLog(action, () => (log) => log.writeBatched(write));
  }

  /**
   * Makes a write through the log's writer. `prepare` runs at once; the function it returns runs when its turn comes.
   *
   * @param action completes a failure's message "the store could not …"
   */
  async #writeLog<T>(action: string, prepare: () => (log: LogBackend) => Promise<T>): Promise<T> {
    try {
      const send = prepare();
      return await this.mutex.runLog(() => send(this.parts.log));
    } catch (error) {
      throw new StoreFailure(action, error);
    }
  }

  addMerchant(name: string, nowMs: number): Promise<Merchant> {
    return this.mutex.runExclusive(() => this.#registry.addMerchant(name, nowMs));
  }

  async addDevice(device: NewDevice): Promise<Device> {
    await this.addDevices([device]);
    return ((await this.findDevice(device.mac)) as DeviceReading).device;
  }

  addDevices(devices: readonly NewDevice[]): Promise<void> {
    return this.mutex.runExclusive(() => this.#devices.addDevices(devices));
  }

  replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs?: number,
  ): Promise<ReplacedCredentials> {
    return this.mutex.runExclusive(() =>
      this.#credentials.replaceLockCredential(mac, secretHash, nowMs, keepOldUntilMs),
    );
  }

  addPhone(phone: NewPhone): Promise<Phone> {
    return this.mutex.runExclusive(() => this.#credentials.addPhone(phone));
  }

  revokePhone(mac: Mac, name: string, nowMs: number): Promise<ReplacedCredentials> {
    return this.mutex.runExclusive(() => this.#credentials.revokePhone(mac, name, nowMs));
  }

  async changeDevice(change: DeviceChange): Promise<void> {
    await this.mutex.runExclusive(() => this.#devices.changeDevice(change));
    await this.moveStagedEvents();
  }

  async describeLock(change: Omit<DescribeLock, 'op'>): Promise<void> {
    await this.#writeForMerchant('name a lock', { op: 'describe-lock', ...change });
  }

  revokeCredentials(mac: Mac, nowMs: number): Promise<void> {
    return this.mutex.runExclusive(() => this.#credentials.revokeCredentials(mac, nowMs));
  }

  async removeDevice(mac: Mac, nowMs: number, cancelledAtMs?: number): Promise<void> {
    await this.mutex.runExclusive(() => this.#devices.removeDevice(mac, nowMs, cancelledAtMs));
    await this.moveStagedEvents();
  }

  eraseDevice(deviceId: number, state: string | null): Promise<Erased> {
    const { log, writer } = this.parts;
    return this.mutex.runExclusive(async () => {
      try {
        await log.distrustHints(deviceId);
        // The index on disk does not have the uplinks in the memtable yet, so their ids are passed.
        const erased = inTransaction(writer, () =>
          this.#deletion.erase(deviceId, state, log.memtable.idsOf(deviceId, 0)),
        );
        log.recent.clear();
        return erased;
      } catch (error) {
        throw new StoreFailure('erase a lock', error);
      }
    });
  }

  /** Checkpoints and truncates the WAL, which still has data that was erased in the file. */
  scrub(): Promise<void> {
    return this.mutex.runExclusive(async () => {
      await this.parts.log.checkpointsIdle();
      if (!truncateWal(this.parts.writer, this.parts.file))
        throw new StoreFailure('truncate its WAL', new Error('another process is reading the file; try again'));
    });
  }

  async deleteOld(chunk: AgingChunk): Promise<AgingResult> {
    try {
      const result = await this.mutex.runLog(() => this.parts.log.deleteOld(chunk));
      this.parts.log.recent.clear();
      return result;
    } catch (error) {
      throw new StoreFailure('delete old rows', error);
    }
  }

  addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl> {
    return this.mutex.runExclusive(() => this.#urls.addWebhookUrl(url));
  }

  writeMetadata(name: string, value: string): Promise<void> {
    return this.#writeBatched('write metadata', { type: 'metadata', name, value });
  }

  readCopy(): Promise<StoreCopy> {
    return this.#copies.make();
  }

  async close(): Promise<void> {
    await this.#copies.stop();
    await this.parts.figures.close();
    await this.parts.scans.close();
    await this.mutex.idle();
    const { log } = this.parts;
    // Saves the next start from loading these uplinks. If this fails, the next start loads them.
    if (log.memtable.count > MAX_UPLINKS_IN_MEMTABLE_AT_CLOSE) await log.flushIndexes().catch(() => undefined);
    await log.close();
    this.parts.reader.close();
    unmarkRunning(this.parts.file);
    // Closing the last writing connection checkpoints the WAL.
    this.parts.writer.close();
    sumClosedFile(this.parts.file);
    this.parts.lock.release();
  }
}
