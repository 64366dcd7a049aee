/** The store's reads. They read committed rows, on connections of their own; PostgresStore adds the writes. */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { LockAccount, StoredState } from '../contract/devices/device.js';
import type { LogEntry, StoredFinding } from '../contract/log/log-entry.js';
import type { LogPosition } from '../contract/log/log-position.js';
import type { StoredUplink } from '../contract/log/stored-uplink.js';
import type { DiskSpace, StoreFigures } from '../contract/store-figures.js';
import type { DueDelivery } from '../contract/webhooks/delivery.js';
import type { WebhookUrl } from '../contract/webhooks/webhook-url.js';
import { latestByLife } from '../tables/devices/latest-by-life.js';
import { Marks } from '../tables/devices/marks.js';
import type { TableParts } from '../tables/table-parts.js';
import { TableReads } from '../tables/table-reads.js';
import type { Connections } from './connections/connections.js';
import { readDiskSpace, readFigures } from './figures.js';
import { DueReads } from './log/due-reads.js';
import { LockAccounts } from './log/lock-accounts.js';
import { LogMerge } from './log/log-merge.js';
import { LogReads } from './log/log-reads.js';
import type { Sql } from './sql.js';
import { listUrls } from './tables/webhooks/url-rows.js';

/**
 * How many of a lock's last received uplinks are searched for its latest ones, in addition to the index by key, if its
 * flash was ever wiped: then its keys (boot and sequence) started again, so the highest ones may be old.
 */
const MAX_RECENT_BY_LIFE = 1_000;

export class PostgresReads extends TableReads {
  readonly marks: Marks;
  protected readonly read: Sql;
  protected readonly log: LogReads;
  readonly #accounts: LockAccounts;
  readonly #due: DueReads;

  constructor({ read }: Pick<Connections, 'read'>, parts: TableParts) {
    super(parts.readTables, parts.dialect);
    this.read = read;
    this.log = new LogReads(read);
    this.#accounts = new LockAccounts(read);
    this.#due = new DueReads(read);
    this.marks = new Marks(parts);
  }

  readFigures(): Promise<StoreFigures> {
    return readFigures(this.read);
  }

  readDiskSpace(): Promise<DiskSpace> {
    return readDiskSpace(this.read);
  }

  readDeviceState(deviceId: number): Promise<string | null> {
    return this.log.readState(deviceId);
  }

  readDeviceStates(deviceIds?: readonly number[]): Promise<StoredState[]> {
    return this.log.readStates(deviceIds);
  }

  readDigests(credentialId: number, boot: number, sequence: number): Promise<Buffer[]> {
    return this.log.findDigests(credentialId, boot, sequence);
  }

  readFindings(deviceId: number, limit: number, beforeId?: number): Promise<StoredFinding[]> {
    return this.log.readFindings(deviceId, limit, beforeId);
  }

  async *readLog(deviceId: number, limit: number): AsyncGenerator<LogEntry[]> {
    const merge = new LogMerge(this.log, deviceId, limit);
    for (let chunk = await merge.next(); chunk.length > 0; chunk = await merge.next()) yield chunk;
  }

  readLogChunks(deviceId: number, limit: number): { next(): Promise<LogEntry[]> } {
    return new LogMerge(this.log, deviceId, limit);
  }

  async *readUplinksAfterStates(
    maxUplinks: number,
    limit: number,
    deviceIds?: readonly number[],
  ): AsyncGenerator<StoredUplink[]> {
    let afterId = await this.log.findIdBeforeStates(maxUplinks, deviceIds);
    for (;;) {
      const chunk = await this.log.readUplinksAfterStates(afterId, limit, deviceIds);
      const last = chunk.at(-1);
      if (last === undefined) return;
      yield chunk;
      afterId = last.id;
    }
  }

  findLock(mac: Mac, kind: Source = 'lock'): Promise<LockAccount | null> {
    return this.#accounts.find(mac, kind);
  }

  readEvents(
    merchantId: number,
    after: LogPosition,
    limit: number,
    kinds: 'pings' | 'all' = 'pings',
  ): Promise<StoredUplink[]> {
    return this.log.readEvents(merchantId, after, limit, kinds);
  }

  readOutcomesAfter(urlId: number, after: LogPosition): Promise<number[]> {
    return this.log.readOutcomesAfter(urlId, after);
  }

  readDueDeliveries(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]> {
    return this.#due.readDue(urlId, nowMs, limit);
  }

  nextDueAtMs(urlId: number, except: ReadonlySet<number> = new Set()): Promise<number | null> {
    return this.#due.nextDueAtMs(urlId, except);
  }

  readLastReceivedAtMs(): Promise<number | null> {
    return this.log.readLastReceivedAtMs();
  }

  async readUplinks(deviceId: number, limit: number, source: Source = 'lock'): Promise<StoredUplink[]> {
    const credentials = await this.credentialReads.readCredentialIds(deviceId, source);
    const marks = source === 'lock' ? await this.marks.read(deviceId) : [];
    const latest = await this.log.readLatest(credentials, limit);
    if (marks.length === 0) return latest;
    const recent = await this.log.readRecentOf(deviceId, MAX_RECENT_BY_LIFE);
    return latestByLife([...latest, ...recent], credentials, marks).slice(0, limit);
  }

  listWebhookUrls(): Promise<WebhookUrl[]> {
    return listUrls(this.read);
  }
}
