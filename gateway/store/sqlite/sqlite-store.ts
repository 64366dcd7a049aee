/**
 * The embedded engine: one SQLite file through better-sqlite3, in WAL mode (write-ahead log: SQLite appends changes to
 * a second file, and checkpoints copy them into the first) with synchronous FULL.
 *
 * One connection writes and one only reads, so that a read never sees a part of a transaction; the log thread, if used,
 * has a third connection. A mutex serialises writes, so that no write waits inside SQLite. The two hot paths are
 * hand-written SQL (log/log-writer.ts, log/log-reader.ts); other statements go through Kysely.
 */
import SqliteDatabase, { type Database, type Statement } from 'better-sqlite3';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { AuditStore } from '../contract/audit-store.js';
import type { ConsoleSessionStore } from '../contract/console-session-store.js';
import { StoreFailure } from '../contract/errors.js';
import { DENSE_SLOT, idInSlot, type LogPosition } from '../contract/log/log-position.js';
import type { MarkStore } from '../contract/mark-store.js';
import type { AccessStore } from '../contract/merchants/access-store.js';
import type { InvitationStore } from '../contract/merchants/invitation-store.js';
import type { MerchantStore } from '../contract/merchants/merchant-store.js';
import type { DescribeLock } from '../contract/merchants/merchant-write.js';
import type { PeopleStore } from '../contract/merchants/people-store.js';
import { DEFAULT_QUOTA, type Quota } from '../contract/merchants/quota.js';
import type { ScanStore } from '../contract/merchants/uplink-scan.js';
import type { NoticeStore } from '../contract/notice-store.js';
import type { NotificationChange, NotificationStore } from '../contract/notify/notification-store.js';
import type { OperatorTokenStore } from '../contract/operator-token-store.js';
import type { RefusalStore } from '../contract/refusal-store.js';
import type { SecretStore } from '../contract/secret-store.js';
import type {
  AgingChunk,
  AgingResult,
  Commit,
  CredentialOwner,
  DeliveryProgress,
  Device,
  DeviceChange,
  DevicePage,
  DeviceReading,
  DueDelivery,
  Erased,
  InvalidCredentials,
  LockAccount,
  LogEntry,
  Merchant,
  NewDevice,
  NewPhone,
  NewWebhookUrl,
  Phone,
  QuarantinedMessage,
  Store,
  StoredFinding,
  StoredState,
  StoredUplink,
  WebhookUrl,
} from '../contract/store.js';
import type { StoreCopy } from '../contract/store-copy.js';
import type { DiskSpace, StoreFigures } from '../contract/store-figures.js';
import type { StoreOptions } from '../contract/store-options.js';
import type { UsageStore } from '../contract/usage-store.js';
import type { WebhookStore } from '../contract/webhook-store.js';
import type { WhyStore } from '../contract/why-store.js';
import { LiveCopies } from './backup/live-copy.js';
import { sumClosedFile } from './closed-file.js';
import { Deletion } from './deletion.js';
import { inTransaction, openDurable } from './durable-file.js';
import { readDiskSpace } from './figures/disk-space.js';
import { InlineFigures } from './figures/figures-count.js';
import { FiguresThread } from './figures/figures-in-thread.js';
import type { DataLock } from './folder/data-lock.js';
import { takeFolder } from './folder/take-folder.js';
import { closeUnopened, markRunning, numberStore, truncateWal, unmarkRunning } from './folder/wal-presence.js';
import { Kysely, SqliteDialect } from './kysely.js';
import type { BatchedWrite } from './log/batched-write.js';
import { InlineLog, type LogBackend } from './log/log-backend.js';
import { catchUp } from './log/log-catch-up.js';
import { LogMerge } from './log/log-merge.js';
import { LogReader } from './log/log-reader.js';
import { packCommit } from './log/packed-commit.js';
import { ThreadLog } from './log/thread-log.js';
import { UplinkLookup } from './log/uplink-lookup.js';
import { MAX_WAL_PAGES } from './log/wal-checkpointer.js';
import { migrate } from './migrate.js';
import { Scans } from './scan/scans.js';
import type { Tables } from './schema.js';
import { SqliteAccess } from './tables/access.js';
import { SqliteAudit } from './tables/audit.js';
import { CommandTableStore } from './tables/commands.js';
import { SqliteConsoleSessions } from './tables/console-sessions.js';
import { DeviceTables } from './tables/devices.js';
import { SqliteInvitations } from './tables/invitations.js';
import { latestByLife } from './tables/latest-by-life.js';
import { SqliteMarks } from './tables/marks.js';
import { SqliteNotices } from './tables/notices.js';
import { SqliteNotifications } from './tables/notify/notifications.js';
import { SqliteOperatorTokens } from './tables/operator-tokens.js';
import { SqliteMerchants } from './tables/people/merchants.js';
import { SqlitePeople, type WriteForMerchant } from './tables/people.js';
import { SqliteRefusals } from './tables/refusals.js';
import { Registry } from './tables/registry.js';
import { SqliteSecrets } from './tables/secrets.js';
import { SqliteUsage } from './tables/usage.js';
import { DueDeliveries } from './tables/webhooks/due-deliveries.js';
import { SqliteWebhooks } from './tables/webhooks/webhooks.js';
import { SqliteWhy } from './tables/why.js';
import { WriteMutex } from './write-mutex.js';

/**
 * How many of a lock's last received uplinks are searched for its latest uplinks, in addition to the index by key. A
 * reflash starts a new life of the lock, in which its keys (boot and sequence) start again, so the highest keys may be
 * of an earlier life (mark-store.ts).
 */
const MAX_RECENT_BY_LIFE = 1_000;
/**
 * A store that closes with more uplinks than this in its memtable (the part of the log's indexes that is held in
 * memory) flushes the memtable first.
 */
const MAX_UPLINKS_IN_MEMTABLE_AT_CLOSE = 5000;

/**
 * Opens the store in `folder`, creating it if it doesn't exist, and locks the folder for this process.
 *
 * @throws LockgateError what `takeFolder` throws; `store-newer` if a newer version of lockgate wrote it, `store-unsafe`
 * if the file system can't make commits durable
 */
export async function openSqliteStore(folder: string, options: StoreOptions = {}): Promise<Store> {
  const {
    logThread = false,
    scanThread = false,
    runSize,
    onCatchUp = () => undefined,
    quota = DEFAULT_QUOTA,
  } = options;
  const { file, isNew, lock, restoreEvidence } = await takeFolder(folder, options);
  const figuresThread = options.figuresThread ? new FiguresThread(file) : undefined;
  let writer: Database | undefined;
  try {
    writer = openDurable(file);
    const tables = new Kysely<Tables>({ dialect: new SqliteDialect({ database: writer }) });
    await migrate(writer, file, isNew ? 'make' : 'open');
    await catchUp(writer, onCatchUp);
    numberStore(writer);
    markRunning(file);
    const reader = new SqliteDatabase(file, { readonly: true });
    // The log thread checkpoints the WAL; this connection does so only if the log thread can't keep up.
    if (logThread) writer.pragma(`wal_autocheckpoint = ${2 * MAX_WAL_PAGES}`);
    // The figures thread counts rows at its start, while the log opens.
    const figuresOpened = figuresThread?.open();
    const log = logThread ? await ThreadLog.open({ file, runSize }, reader) : new InlineLog(writer, runSize);
    await figuresOpened;
    const figures = figuresThread ?? new InlineFigures(reader);
    const scans = new Scans({ file, reader, memtable: log.memtable, hasThread: scanThread });
    const store = new SqliteStore({ file, lock, writer, reader, tables, log, figures, scans, quota });
    // A kill may have left events staged.
    await store.moveStagedEvents();
    return store;
  } catch (error) {
    await figuresThread?.close();
    if (writer !== undefined) closeUnopened(writer, file);
    restoreEvidence();
    lock.release();
    throw error;
  }
}

/** The opened parts of the store, which the store closes. */
interface Parts {
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

class SqliteStore implements Store {
  readonly description: string;
  readonly commands: CommandTableStore;
  readonly usage: UsageStore;
  readonly webhooks: WebhookStore;
  readonly access: AccessStore;
  readonly people: PeopleStore;
  readonly merchants: MerchantStore;
  readonly invitations: InvitationStore;
  readonly secrets: SecretStore;
  readonly notices: NoticeStore;
  readonly notifications: NotificationStore;
  readonly why: WhyStore;
  readonly scans: ScanStore;
  readonly audit: AuditStore;
  readonly refusals: RefusalStore;
  readonly marks: MarkStore;
  readonly operatorTokens: OperatorTokenStore;
  readonly consoleSessions: ConsoleSessionStore;
  readonly #parts: Parts;
  readonly #mutex = new WriteMutex();
  readonly #log: LogReader;
  readonly #lookup: UplinkLookup;
  readonly #due: DueDeliveries;
  readonly #deletion: Deletion;
  readonly #registry: Registry;
  readonly #readRegistry: Registry;
  readonly #devices: DeviceTables;
  readonly #readDevices: DeviceTables;
  readonly #writeForMerchant: WriteForMerchant;
  readonly #copies: LiveCopies;
  readonly #hasStagedEvents: Statement;

  constructor(parts: Parts) {
    this.description = `SQLite, ${parts.file}`;
    this.#parts = parts;
    this.#copies = new LiveCopies(parts.file);
    this.#log = new LogReader(parts.reader);
    this.#lookup = new UplinkLookup(parts.reader, parts.log.memtable);
    const lookup = this.#lookup;
    this.#due = new DueDeliveries(parts.reader);
    this.#deletion = new Deletion(parts.writer);
    const readTables = new Kysely<Tables>({ dialect: new SqliteDialect({ database: parts.reader }) });
    this.#registry = new Registry(parts.tables);
    this.#readRegistry = new Registry(readTables);
    this.#devices = new DeviceTables(parts.tables);
    this.#readDevices = new DeviceTables(readTables);
    this.#hasStagedEvents = parts.reader.prepare('SELECT 1 FROM staged_event LIMIT 1');
    const onEnded = (): Promise<void> => this.moveStagedEvents();
    this.commands = new CommandTableStore(this.#mutex, parts.tables, readTables, onEnded);
    const writeBatched = (action: string, write: BatchedWrite): Promise<void> => this.#writeBatched(action, write);
    this.usage = new SqliteUsage({ mutex: this.#mutex, tables: parts.tables, readTables, writeBatched });
    this.webhooks = new SqliteWebhooks({ ...parts, mutex: this.#mutex, readTables, lookup });
    const write: WriteForMerchant = (action, operation) => {
      return this.#writeLog(action, () => (log) => log.writeForMerchant({ type: 'merchant', operation }));
    };
    this.#writeForMerchant = write;
    const { reader, quota } = parts;
    this.access = new SqliteAccess({ mutex: this.#mutex, tables: parts.tables, readTables, reader, write });
    this.people = new SqlitePeople({ readTables, reader, write, quota });
    this.merchants = new SqliteMerchants({ mutex: this.#mutex, tables: parts.tables, readTables });
    this.invitations = new SqliteInvitations({ reader, write, quota });
    this.secrets = new SqliteSecrets({ ...parts, mutex: this.#mutex });
    const notifications = new SqliteNotifications({ ...parts, mutex: this.#mutex });
    this.notifications = notifications;
    const queue = (changes: readonly NotificationChange[]): void => notifications.recordWithin(changes);
    this.notices = new SqliteNotices({ mutex: this.#mutex, tables: parts.tables, readTables, queue });
    this.scans = parts.scans;
    this.why = new SqliteWhy(parts.reader, this.#log, lookup);
    this.refusals = new SqliteRefusals({ readTables, writeBatched });
    this.audit = new SqliteAudit({ mutex: this.#mutex, tables: parts.tables, readTables });
    this.marks = new SqliteMarks({ mutex: this.#mutex, tables: parts.tables, readTables });
    this.operatorTokens = new SqliteOperatorTokens({ mutex: this.#mutex, tables: parts.tables, readTables });
    this.consoleSessions = new SqliteConsoleSessions({ mutex: this.#mutex, tables: parts.tables, readTables });
  }

  append(commit: Commit): Promise<void> {
    return this.#writeLog('append', () => {
      const packed = packCommit(commit);
      return (log) => log.append(packed);
    });
  }

  /**
   * Moves events that are staged into the log (migration 0029), with a commit that does nothing else. If that fails, a
   * later commit moves them.
   */
  async moveStagedEvents(): Promise<void> {
    if (this.#hasStagedEvents.get() === undefined) return;
    await this.append({ incoming: [], judged: [], states: new Map() }).catch(() => undefined);
  }

  recordProgress(progress: readonly DeliveryProgress[]): Promise<void> {
    const dense = progress.map((each) => ({ ...each, cursor: each.cursor && idInSlot(each.cursor, DENSE_SLOT) }));
    return this.#writeBatched('record deliveries', { type: 'progress', progress: dense });
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
      return await this.#mutex.runLog(() => send(this.#parts.log));
    } catch (error) {
      throw new StoreFailure(action, error);
    }
  }

  /** Runs `work` in one durable transaction in this thread. @param action completes "the store could not …" */
  #commit<T>(action: string, work: () => T): Promise<T> {
    return this.#mutex.runExclusive(() => {
      try {
        return inTransaction(this.#parts.writer, work);
      } catch (error) {
        throw new StoreFailure(action, error);
      }
    });
  }

  async readFigures(): Promise<StoreFigures> {
    return await this.#parts.figures.read();
  }

  readDiskSpace(): Promise<DiskSpace> {
    return readDiskSpace(this.#parts.file);
  }

  async readDeviceState(deviceId: number): Promise<string | null> {
    return this.#read('read a device', () => this.#log.readState(deviceId));
  }

  async readDeviceStates(deviceIds?: readonly number[]): Promise<StoredState[]> {
    return this.#read('read the devices', () => this.#log.readStates(deviceIds));
  }

  async readDigests(credentialId: number, boot: number, sequence: number): Promise<Buffer[]> {
    return this.#read('look up an uplink', () => this.#lookup.findDigests(credentialId, boot, sequence));
  }

  async readFindings(deviceId: number, limit: number, beforeId?: number): Promise<StoredFinding[]> {
    return this.#read('read findings', () => this.#log.readFindings(deviceId, limit, beforeId));
  }

  async *readLog(deviceId: number, limit: number): AsyncGenerator<LogEntry[]> {
    const merge = new LogMerge(this.#log, this.#lookup, deviceId, limit);
    for (let chunk = merge.next(); chunk.length > 0; chunk = merge.next()) yield chunk;
  }

  readLogChunks(deviceId: number, limit: number): { next(): Promise<LogEntry[]> } {
    const merge = new LogMerge(this.#log, this.#lookup, deviceId, limit);
    return { next: async () => this.#read('read the log', () => merge.next()) };
  }

  async *readUplinksAfterStates(
    maxUplinks: number,
    limit: number,
    deviceIds?: readonly number[],
  ): AsyncGenerator<StoredUplink[]> {
    let afterId = this.#read('read the log', () => this.#log.findIdBeforeStates(maxUplinks, deviceIds));
    for (;;) {
      const chunk = this.#read('read the log', () => this.#log.readUplinksAfterStates(afterId, limit, deviceIds));
      const last = chunk.at(-1);
      if (last === undefined) return;
      yield chunk;
      afterId = last.id;
    }
  }

  async findLock(mac: Mac, kind: Source = 'lock'): Promise<LockAccount | null> {
    return this.#read('look up a lock', () => this.#log.findLock(mac, kind));
  }

  async readEvents(
    merchantId: number,
    after: LogPosition,
    limit: number,
    kinds: 'pings' | 'all' = 'pings',
  ): Promise<StoredUplink[]> {
    const afterId = idInSlot(after, DENSE_SLOT);
    return this.#read('read events', () => this.#log.readEvents(merchantId, afterId, limit, kinds));
  }

  async readOutcomesAfter(urlId: number, after: LogPosition): Promise<number[]> {
    const afterId = idInSlot(after, DENSE_SLOT);
    return this.#read('read deliveries', () => this.#log.readOutcomesAfter(urlId, afterId));
  }

  async readDueDeliveries(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]> {
    return this.#read('read deliveries', () => this.#due.read(urlId, nowMs, limit));
  }

  async nextDueAtMs(urlId: number, except: ReadonlySet<number> = new Set()): Promise<number | null> {
    return this.#read('read deliveries', () => this.#due.nextAtMs(urlId, except));
  }

  /** Runs a read. @param action completes a failure's message "the store could not …" */
  #read<T>(action: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new StoreFailure(action, error);
    }
  }

  addMerchant(name: string, nowMs: number): Promise<Merchant> {
    return this.#mutex.runExclusive(() => this.#registry.addMerchant(name, nowMs));
  }

  listMerchants(): Promise<Merchant[]> {
    return this.#readRegistry.listMerchants();
  }

  async addDevice(device: NewDevice): Promise<Device> {
    await this.addDevices([device]);
    return ((await this.findDevice(device.mac)) as DeviceReading).device;
  }

  addDevices(devices: readonly NewDevice[]): Promise<void> {
    return this.#mutex.runExclusive(() => this.#devices.addDevices(devices));
  }

  findTakenMacs(macs: readonly Mac[]): Promise<Mac[]> {
    return this.#readDevices.findTakenMacs(macs);
  }

  replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs?: number,
  ): Promise<InvalidCredentials> {
    return this.#mutex.runExclusive(() => this.#devices.replaceLockCredential(mac, secretHash, nowMs, keepOldUntilMs));
  }

  addPhone(phone: NewPhone): Promise<Phone> {
    return this.#mutex.runExclusive(() => this.#devices.addPhone(phone));
  }

  listCredentials(): Promise<CredentialOwner[]> {
    return this.#readDevices.listCredentials();
  }

  listPhones(mac: Mac): Promise<Phone[]> {
    return this.#readDevices.listPhones(mac);
  }

  revokePhone(mac: Mac, name: string, nowMs: number): Promise<InvalidCredentials> {
    return this.#mutex.runExclusive(() => this.#devices.revokePhone(mac, name, nowMs));
  }

  async changeDevice(change: DeviceChange): Promise<void> {
    await this.#mutex.runExclusive(() => this.#devices.changeDevice(change));
    await this.moveStagedEvents();
  }

  async describeLock(change: Omit<DescribeLock, 'op'>): Promise<void> {
    await this.#writeForMerchant('name a lock', { op: 'describe-lock', ...change });
  }

  revokeCredentials(mac: Mac, nowMs: number): Promise<void> {
    return this.#mutex.runExclusive(() => this.#devices.revokeCredentials(mac, nowMs));
  }

  async removeDevice(mac: Mac, nowMs: number, cancelledAtMs?: number): Promise<void> {
    await this.#mutex.runExclusive(() => this.#devices.removeDevice(mac, nowMs, cancelledAtMs));
    await this.moveStagedEvents();
  }

  findDeviceId(mac: Mac): Promise<number | null> {
    return this.#readDevices.findDeviceId(mac);
  }

  eraseDevice(deviceId: number, state: string | null): Promise<Erased> {
    // The index on disk does not have the uplinks in the memtable yet, so their ids are passed.
    const { memtable } = this.#lookup;
    return this.#commit('erase a lock', () => this.#deletion.erase(deviceId, state, memtable.idsOf(deviceId, 0)));
  }

  /** Checkpoints and truncates the WAL, which still has data that was erased in the file. */
  scrub(): Promise<void> {
    return this.#mutex.runExclusive(async () => {
      await this.#parts.log.checkpointsIdle();
      if (!truncateWal(this.#parts.writer, this.#parts.file))
        throw new StoreFailure('truncate its WAL', new Error('another process is reading the file; try again'));
    });
  }

  async deleteOld(chunk: AgingChunk): Promise<AgingResult> {
    try {
      return await this.#mutex.runLog(() => this.#parts.log.deleteOld(chunk));
    } catch (error) {
      throw new StoreFailure('delete old rows', error);
    }
  }

  listDevices(): Promise<DeviceReading[]> {
    return this.#readDevices.listDevices();
  }

  countDevices(merchantId?: number): Promise<number> {
    return this.#readDevices.countDevices(merchantId);
  }

  readDevices(page: DevicePage): Promise<Device[]> {
    return this.#readDevices.readDevices(page);
  }

  findDevices(deviceIds: readonly number[]): Promise<Device[]> {
    return this.#readDevices.findDevices(deviceIds);
  }

  findDevice(mac: Mac): Promise<DeviceReading | null> {
    return this.#readDevices.findDevice(mac);
  }

  async readUplinks(deviceId: number, limit: number, source: Source = 'lock'): Promise<StoredUplink[]> {
    const credentials = await this.#readDevices.readCredentialIds(deviceId, source);
    const marks = source === 'lock' ? await this.marks.read(deviceId) : [];
    return this.#read('read uplinks', () => {
      const latest = this.#lookup.readLatest(credentials, limit);
      if (marks.length === 0) return latest;
      const recent = this.#lookup.readRecentOf(deviceId, MAX_RECENT_BY_LIFE);
      return latestByLife([...latest, ...recent], credentials, marks).slice(0, limit);
    });
  }

  readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]> {
    return this.#readRegistry.readQuarantine(deviceId, limit);
  }

  addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl> {
    return this.#mutex.runExclusive(() => this.#registry.addWebhookUrl(url));
  }

  listWebhookUrls(): Promise<WebhookUrl[]> {
    return this.#readRegistry.listWebhookUrls();
  }

  async readLastReceivedAtMs(): Promise<number | null> {
    return this.#read('read the log', () => this.#log.readLastReceivedAtMs());
  }

  readMetadata(name: string): Promise<string | null> {
    return this.#readRegistry.readMetadata(name);
  }

  writeMetadata(name: string, value: string): Promise<void> {
    return this.#writeBatched('write metadata', { type: 'metadata', name, value });
  }

  readCopy(): Promise<StoreCopy> {
    return this.#copies.make();
  }

  async close(): Promise<void> {
    await this.#copies.stop();
    await this.#parts.figures.close();
    await this.#parts.scans.close();
    await this.#mutex.idle();
    const { log } = this.#parts;
    // Saves the next start from loading these uplinks. If this fails, the next start loads them.
    if (log.memtable.count > MAX_UPLINKS_IN_MEMTABLE_AT_CLOSE) await log.flushIndexes().catch(() => undefined);
    await log.close();
    this.#parts.reader.close();
    unmarkRunning(this.#parts.file);
    // Closing the last writing connection checkpoints the WAL.
    this.#parts.writer.close();
    sumClosedFile(this.#parts.file);
    this.#parts.lock.release();
  }
}
