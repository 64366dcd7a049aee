/**
 * A store in PostgreSQL: its writes and its end. Its reads are in postgres-reads.ts. Build it with `openPostgresStore`.
 *
 * Repeats gateway/store/sqlite/sqlite-store.ts: a class must declare each member of the contract itself. The compiler
 * checks both lists against the contract.
 */
import { LockgateError } from '../../../proto/errors.js';
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
import { type Commit, EMPTY_COMMIT } from '../contract/log/commit.js';
import { ALL_RECORDED, type CommitResult, type ProgressResult } from '../contract/log/commit-result.js';
import type { CommitSpacing } from '../contract/log/commit-spacing.js';
import type { Merchant } from '../contract/merchants/merchant-store.js';
import type { DescribeLock } from '../contract/merchants/merchant-write.js';
import type { Quota } from '../contract/merchants/quota.js';
import type { Store } from '../contract/store.js';
import type { StoreCopy } from '../contract/store-copy.js';
import type { DeliveryProgress } from '../contract/webhooks/delivery.js';
import type { NewWebhookUrl, WebhookUrl } from '../contract/webhooks/webhook-url.js';
import { soleOwner } from '../log/sole-owner.js';
import { CommandTableStore } from '../tables/commands.js';
import { ConsoleSessions } from '../tables/console-sessions.js';
import { CredentialTables } from '../tables/devices/credentials.js';
import { DeviceTables } from '../tables/devices/devices.js';
import { Invitations } from '../tables/invitations.js';
import type { Kysely } from '../tables/kysely.js';
import type { WriteForMerchant } from '../tables/merchant-refusals.js';
import { Merchants } from '../tables/merchants.js';
import type { NoticeParts } from '../tables/notices.js';
import { OperatorTokens } from '../tables/operator-tokens.js';
import { Refusals } from '../tables/refusals.js';
import { Registry } from '../tables/registry.js';
import type { Tables } from '../tables/schema.js';
import type { TableParts, WriteBatched } from '../tables/table-parts.js';
import type { Connections } from './connections/connections.js';
import { deleteOld, eraseDevice } from './deletion.js';
import type { CommitLog } from './log/commit-log.js';
import { type Claim, releaseSlot } from './node-claim.js';
import type { SharedOwnership } from './owners/shared-ownership.js';
import type { PartitionKeeper } from './partitions.js';
import { PostgresReads } from './postgres-reads.js';
import { Scans } from './scans.js';
import { BatchedWrites, putMetadata } from './tables/batched-writes.js';
import { kyselySql } from './tables/kysely-sql.js';
import { SharedAudit, SharedNotices } from './tables/leftovers.js';
import { Notifications } from './tables/notify/notifications.js';
import { recordNotifications } from './tables/notify/queue.js';
import { Access } from './tables/people/access.js';
import { invitationReads } from './tables/people/invitations.js';
import { writeForMerchant } from './tables/people/merchant-writer.js';
import { People } from './tables/people/people.js';
import { POSTGRES } from './tables/postgres-dialect.js';
import { Secrets } from './tables/secrets.js';
import { SharedUsage } from './tables/shared-usage.js';
import { UsageAdds } from './tables/usage-adds.js';
import { gatherProgress } from './tables/webhooks/gathered-progress.js';
import { type LockUrl, lockUrl, recordProgress } from './tables/webhooks/progress.js';
import { addUrl, changeUrl } from './tables/webhooks/url-rows.js';
import { Webhooks } from './tables/webhooks/webhooks.js';
import { Why } from './tables/why.js';
import type { Writes } from './writes.js';

/** The opened parts of the store, which the store closes. */
export interface StoreParts {
  readonly description: string;
  readonly connections: Connections;
  readonly claim: Claim;
  readonly writes: Writes;
  readonly readTables: Kysely<Tables>;
  readonly commits: CommitLog;
  readonly quota: Quota;
  /** Undefined if this is the only gateway on the database. */
  readonly shared: SharedOwnership | undefined;
  readonly partitions: PartitionKeeper;
}

/**
 * One commit every 13 ms: what a commit costs beside its uplinks is partly the database's time, and all gateways share
 * the database (docs/decisions.md, 2026-11-30).
 */
const COMMIT_SPACING: CommitSpacing = { commitsPerSecond: 75, minSharingItems: 512 };

export class PostgresStore extends PostgresReads implements Store {
  readonly description: string;
  readonly commitSpacing = COMMIT_SPACING;
  readonly ownership: Store['ownership'];
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
  readonly #parts: StoreParts;
  readonly #adds: UsageAdds;
  readonly #writeTables: { registry: Registry; devices: DeviceTables; credentials: CredentialTables };
  readonly #writeForMerchant: WriteForMerchant;

  constructor(parts: StoreParts) {
    const { connections, writes, readTables, quota } = parts;
    const { read } = connections;
    const tableParts: TableParts = { mutex: writes, tables: writes.tables, readTables, dialect: POSTGRES };
    super(connections, tableParts);
    this.#parts = parts;
    this.description = parts.description;
    const { shared } = parts;
    this.ownership = shared ?? soleOwner(parts.claim.slot);
    this.#writeTables = {
      registry: new Registry(writes.tables),
      devices: new DeviceTables(writes.tables, POSTGRES),
      credentials: new CredentialTables(writes.tables),
    };
    const write: WriteForMerchant = (action, operation) => writeForMerchant(writes, action, operation);
    this.#writeForMerchant = write;
    const batched = new BatchedWrites();
    const adds = new UsageAdds(writes, parts.claim);
    this.#adds = adds;
    const writeBatched: WriteBatched = (action, each) =>
      each.type === 'usage' ? adds.add(each) : writes.run(action, (sql) => batched.write(sql, each));
    this.commands = new CommandTableStore(tableParts, () => this.moveStagedEvents());
    this.usage = new SharedUsage({ ...tableParts, writeBatched, sql: read, adds, shared });
    this.webhooks = new Webhooks(read, writes, this.log, (id, version) => shared?.urls.noteVersion(id, version));
    this.access = new Access({ ...tableParts, write }, read);
    this.people = new People({ read, write, quota });
    const enableUrl = (db: Kysely<Tables>, urlId: number) => changeUrl(kyselySql(db), urlId, { disabledWhy: null });
    this.merchants = new Merchants({ ...tableParts, enableUrl });
    this.invitations = new Invitations({ reads: invitationReads(read), write, quota });
    this.secrets = new Secrets(read, writes);
    this.notifications = new Notifications(read, writes);
    const queue: NoticeParts['queue'] = (db, changes) => recordNotifications(kyselySql(db), changes);
    this.notices = new SharedNotices({ ...tableParts, queue }, read);
    this.why = new Why(read, this.log);
    this.scans = new Scans(read);
    this.audit = new SharedAudit(tableParts, writes);
    this.refusals = new Refusals({ readTables, writeBatched });
    this.operatorTokens = new OperatorTokens(tableParts);
    this.consoleSessions = new ConsoleSessions(tableParts);
  }

  async append(commit: Commit): Promise<CommitResult> {
    const result = await this.#parts.commits.append(commit);
    if ((commit.commands ?? []).length > 0) await this.moveStagedEvents();
    return result;
  }

  /**
   * Moves staged events into the log. When a command ends, a trigger puts the merchant's event into `staged_event`;
   * each commit moves what is there, and this one does nothing else. If it fails, a later commit moves them.
   */
  async moveStagedEvents(): Promise<void> {
    if ((await this.read.get('SELECT 1 AS one FROM staged_event LIMIT 1')) === undefined) return;
    await this.#parts.commits.append(EMPTY_COMMIT).catch(() => undefined);
  }

  async recordProgress(progress: readonly DeliveryProgress[]): Promise<ProgressResult> {
    const { writes, shared } = this.#parts;
    const lock: LockUrl = shared === undefined ? lockUrl : (sql, urlId) => shared.urls.mayRecord(sql, urlId);
    const refusedUrlIds = await writes.run('record deliveries', async (sql) => {
      const refused = new Set<number>();
      for (const each of gatherProgress(progress))
        if (!(await recordProgress(sql, each, lock))) refused.add(each.urlId);
      return [...refused];
    });
    return refusedUrlIds.length === 0 ? ALL_RECORDED : { refusedUrlIds };
  }

  addMerchant(name: string, nowMs: number): Promise<Merchant> {
    return this.#exclusive(({ registry }) => registry.addMerchant(name, nowMs));
  }

  async addDevice(device: NewDevice): Promise<Device> {
    await this.addDevices([device]);
    return ((await this.findDevice(device.mac)) as DeviceReading).device;
  }

  addDevices(devices: readonly NewDevice[]): Promise<void> {
    return this.#exclusive((tables) => tables.devices.addDevices(devices));
  }

  replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs?: number,
  ): Promise<ReplacedCredentials> {
    return this.#exclusive(({ credentials }) =>
      credentials.replaceLockCredential(mac, secretHash, nowMs, keepOldUntilMs),
    );
  }

  addPhone(phone: NewPhone): Promise<Phone> {
    return this.#exclusive(({ credentials }) => credentials.addPhone(phone));
  }

  revokePhone(mac: Mac, name: string, nowMs: number): Promise<ReplacedCredentials> {
    return this.#exclusive(({ credentials }) => credentials.revokePhone(mac, name, nowMs));
  }

  async changeDevice(change: DeviceChange): Promise<void> {
    await this.#exclusive(({ devices }) => devices.changeDevice(change));
    await this.moveStagedEvents();
  }

  async describeLock(change: Omit<DescribeLock, 'op'>): Promise<void> {
    await this.#writeForMerchant('name a lock', { op: 'describe-lock', ...change });
  }

  revokeCredentials(mac: Mac, nowMs: number): Promise<void> {
    return this.#exclusive(({ credentials }) => credentials.revokeCredentials(mac, nowMs));
  }

  async removeDevice(mac: Mac, nowMs: number, cancelledAtMs?: number): Promise<void> {
    await this.#exclusive(({ devices }) => devices.removeDevice(mac, nowMs, cancelledAtMs));
    await this.moveStagedEvents();
  }

  eraseDevice(deviceId: number, state: string | null): Promise<Erased> {
    return this.#parts.writes.run('erase a lock', (sql) => eraseDevice(sql, deviceId, state), 'exclusive');
  }

  /** Frees the pages of erased rows. Archives of the WAL and backups keep what they have. */
  async scrub(): Promise<void> {
    const tables = ['uplink', 'finding', 'quarantine', 'lock_event', 'attempt', 'delivery', 'device_state', 'refusal'];
    await this.read.run(`VACUUM ${tables.join(', ')}`);
  }

  deleteOld(chunk: AgingChunk): Promise<AgingResult> {
    return this.#parts.writes.run('delete old rows', (sql) => deleteOld(sql, chunk), 'exclusive');
  }

  addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl> {
    return this.#parts.writes.run('add a webhook', (sql) => addUrl(sql, url), 'exclusive');
  }

  writeMetadata(name: string, value: string): Promise<void> {
    return this.#parts.writes.run('write metadata', (sql) => putMetadata(sql, name, value));
  }

  readCopy(): Promise<StoreCopy> {
    return Promise.reject(
      new LockgateError('backup-elsewhere', 'the store is in PostgreSQL: back it up with its own tools, as pgBackRest'),
    );
  }

  async close(): Promise<void> {
    const { commits, writes, claim, connections, shared, partitions } = this.#parts;
    await partitions.stop();
    // Counts of usage whose addition is in doubt are added once more; if the database is away, they may be lost.
    await this.#adds.settle().catch(() => undefined);
    // The slot is released last of all writes: from then on another gateway may take it.
    await shared?.stop();
    await commits.close();
    await writes.idle();
    await releaseSlot(claim, connections);
    await connections.close();
  }

  #exclusive<T>(
    work: (tables: { registry: Registry; devices: DeviceTables; credentials: CredentialTables }) => Promise<T>,
  ): Promise<T> {
    return this.#parts.writes.runExclusive(() => work(this.#writeTables));
  }
}
