/**
 * The interface of a gateway's store; its records are in the files beside it. A contract suite
 * (test/gateway/store/contract/) tests every engine against it.
 *
 * A method that writes resolves after the write is on the disk (fsynced), or rejects with a StoreFailure (errors.ts). A
 * rejected call has changed nothing. An engine that does not know whether a write was made, since its connection to a
 * database broke, finds that out before it settles the call (README.md, "A write in doubt"): no caller ever repeats a
 * write that was made. store-methods.ts lists which methods write.
 *
 * An *uplink* is a message from a lock: a ping, which is an event for its merchant's webhooks, or the acknowledgement
 * of a command. Its *key* is its credential, boot (a counter of the lock's boots) and sequence (a counter within the
 * boot). The *log* is the table of all uplinks in the order of arrival. If several gateways write it, each writes in a
 * *slot* of its own, and a *position* in the log has one id for each slot (log/log-position.ts). The *run's clock*
 * follows the wall clock, except in a sped-up simulation, and never goes back (protocol.md §3). *In service* is a lock
 * that is registered and not removed.
 */
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { CommandStore } from './command-record.js';
import type { AgingChunk, AgingResult, Erased } from './deletion.js';
import type {
  CredentialOwner,
  Device,
  DeviceChange,
  DevicePage,
  DeviceReading,
  LockAccount,
  NewDevice,
  NewPhone,
  Phone,
  ReplacedCredentials,
  StoredState,
} from './devices/device.js';
import type { MarkStore } from './devices/mark-store.js';
import type { RefusalStore } from './devices/refusal-store.js';
import type { Commit } from './log/commit.js';
import type { CommitResult, ProgressResult } from './log/commit-result.js';
import type { CommitSpacing } from './log/commit-spacing.js';
import type { LogEntry, QuarantinedMessage, StoredFinding } from './log/log-entry.js';
import type { LogPosition } from './log/log-position.js';
import type { StoredUplink } from './log/stored-uplink.js';
import type { AccessStore } from './merchants/access-store.js';
import type { InvitationStore } from './merchants/invitation-store.js';
import type { Merchant, MerchantStore } from './merchants/merchant-store.js';
import type { DescribeLock } from './merchants/merchant-write.js';
import type { PeopleStore } from './merchants/people-store.js';
import type { ScanStore } from './merchants/uplink-scan.js';
import type { NotificationStore } from './notify/notification-store.js';
import type { AuditStore } from './operators/audit-store.js';
import type { ConsoleSessionStore } from './operators/console-session-store.js';
import type { NoticeStore } from './operators/notice-store.js';
import type { OperatorTokenStore } from './operators/operator-token-store.js';
import type { SecretStore } from './secret-store.js';
import type { Ownership } from './slots/ownership.js';
import type { StoreCopy } from './store-copy.js';
import type { DiskSpace, StoreFigures } from './store-figures.js';
import type { UsageStore } from './usage-store.js';
import type { WebhookStore } from './webhook-store.js';
import type { DeliveryProgress, DueDelivery } from './webhooks/delivery.js';
import type { NewWebhookUrl, WebhookUrl } from './webhooks/webhook-url.js';
import type { WhyStore } from './why-store.js';

export interface Store {
  /** The engine and the location, for log messages. */
  readonly description: string;
  /** How its commits are best spaced. */
  readonly commitSpacing: CommitSpacing;
  /** Operators' work on webhooks. */
  readonly webhooks: WebhookStore;
  /** The key that secrets are sealed with, and changes of all secrets at once. */
  readonly secrets: SecretStore;
  /** SIM cards, counts, price plans, statements. */
  readonly usage: UsageStore;
  /** Merchants' API keys and tokens. */
  readonly access: AccessStore;
  /** Merchants' users, sessions and pets. */
  readonly people: PeopleStore;
  /** Changes of merchants themselves. */
  readonly merchants: MerchantStore;
  /** Invitations of merchants' users. */
  readonly invitations: InvitationStore;
  /** Notices for operators. */
  readonly notices: NoticeStore;
  /** Messages about troubles to the URLs of operators and merchants. */
  readonly notifications: NotificationStore;
  /** What `lockgate why` reads. */
  readonly why: WhyStore;
  /** Reads of many uplinks of which few may be wanted. */
  readonly scans: ScanStore;
  /** The audit log: who changed what. */
  readonly audit: AuditStore;
  /** Refused packets and connections of locks. */
  readonly refusals: RefusalStore;
  /** Reflash marks of locks. */
  readonly marks: MarkStore;
  /** Operators' named tokens. */
  readonly operatorTokens: OperatorTokenStore;
  /** Sessions of the console. */
  readonly consoleSessions: ConsoleSessionStore;
  /** Which locks, URLs and duties are this gateway's, if several gateways share the store. */
  readonly ownership: Ownership;

  /* Pings: the hot path. */

  /** Writes the commit in one transaction, except for parts whose condition does not hold: the result names these. */
  append(commit: Commit): Promise<CommitResult>;
  /** Returns the stored state of a device, as JSON. */
  readDeviceState(deviceId: number): Promise<string | null>;
  /**
   * Returns the stored states of all devices, or of these. A state includes all uplinks that were in the log when the
   * state was written, also the uplinks of its commit.
   */
  readDeviceStates(deviceIds?: readonly number[]): Promise<StoredState[]>;
  /**
   * Returns those of the newest `maxUplinks` uplinks that arrived after the stored state of their lock was written, in
   * the order of arrival, in chunks of at most `limit`. Uplinks from before the lock's current merchant had it, and of
   * locks without a state, are left out. With `deviceIds` those of these locks; an engine for several gateways then
   * returns older ones too, since the newest may be those of other gateways.
   */
  readUplinksAfterStates(
    maxUplinks: number,
    limit: number,
    deviceIds?: readonly number[],
  ): AsyncIterable<StoredUplink[]>;
  /** Returns the digests of the uplinks with one key; an erased uplink has an empty digest. */
  readDigests(credentialId: number, boot: number, sequence: number): Promise<Buffer[]>;
  /** Returns the lock with this MAC, with the lock's credentials (default) or its phones', for authentication. */
  findLock(mac: Mac, kind?: Source): Promise<LockAccount | null>;

  /* Deliveries: the other hot path. */

  /**
   * Returns the merchant's pings after a position, at most `limit`; with `all`, its other events too. From each slot
   * they are the oldest ones, in order, without a gap; the events of one lock are in order too. If they are fewer than
   * `limit`, the merchant has no later ones.
   *
   * @param onReached called, only by an engine with several slots, with the position that this read reached: every
   *   event of the merchant between `after` and that position is among the returned ones. The position may be after the
   *   last returned event, in slots that were read to their end
   */
  readEvents(
    merchantId: number,
    after: LogPosition,
    limit: number,
    kinds?: 'pings' | 'all',
    onReached?: (reached: LogPosition) => void,
  ): Promise<StoredUplink[]>;
  /**
   * Returns the uplink ids after a position that already have an outcome at this URL: a failed event has a row in the
   * table of deliveries, a delivered event a stored attempt. The URL's cursor, before which every event has an outcome,
   * may be before them.
   */
  readOutcomesAfter(urlId: number, after: LogPosition): Promise<number[]>;
  /**
   * Returns the URL's retries due by `nowMs`, longest due first; at an ordered URL (`WebhookUrl.ordered`), only each
   * lock's oldest pending event.
   */
  readDueDeliveries(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]>;
  /**
   * Returns when the URL's next retry is due, except for these uplink ids, ms since the epoch by the delivery clock
   * (webhooks/webhook-url.ts); null if none waits.
   */
  nextDueAtMs(urlId: number, except?: ReadonlySet<number>): Promise<number | null>;
  /** Stores the progress of URLs in one transaction, except for URLs that the result names. */
  recordProgress(progress: readonly DeliveryProgress[]): Promise<ProgressResult>;

  /* The registry. Each method rejects with a LockgateError if a name or MAC is taken or missing. */

  addMerchant(name: string, nowMs: number): Promise<Merchant>;
  /** Returns all merchants, closed ones too. */
  listMerchants(): Promise<Merchant[]>;
  addDevice(device: NewDevice): Promise<Device>;
  /** Adds all devices or none; a removed lock returns to service. */
  addDevices(devices: readonly NewDevice[]): Promise<void>;
  /** Returns those of these MACs that a lock in service has. */
  findTakenMacs(macs: readonly Mac[]): Promise<Mac[]>;
  /**
   * Gives the lock a new credential and revokes its other credentials; the latest of these may stay valid until
   * `keepOldUntilMs`. Returns all of these others.
   */
  replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs?: number,
  ): Promise<ReplacedCredentials>;
  addPhone(phone: NewPhone): Promise<Phone>;
  /** Returns the lock's unrevoked phones, and the newest revoked phones, newest first. */
  listPhones(mac: Mac): Promise<Phone[]>;
  /** Returns every credential of every lock and its phones, also revoked ones, oldest first. */
  listCredentials(): Promise<CredentialOwner[]>;
  /** Revokes the phone credential with this name. */
  revokePhone(mac: Mac, name: string, nowMs: number): Promise<ReplacedCredentials>;
  changeDevice(change: DeviceChange): Promise<void>;
  /** Changes the name or the labels of a lock, if the merchant has it. */
  describeLock(change: Omit<DescribeLock, 'op'>): Promise<void>;
  /** Revokes all credentials of a lock and its phones. @throws LockgateError `no-such-device` */
  revokeCredentials(mac: Mac, nowMs: number): Promise<void>;
  /**
   * Takes the lock out of service: revokes its credentials and deletes its state, but not its history. Unfinished
   * commands are cancelled as of `cancelledAtMs`, by the run's clock; by default as of `nowMs`.
   */
  removeDevice(mac: Mac, nowMs: number, cancelledAtMs?: number): Promise<void>;
  /** Returns the id of a lock, in service or removed; null if there never was a lock with this MAC. */
  findDeviceId(mac: Mac): Promise<number | null>;
  /**
   * Erases a lock's data, above all its positions: uplinks except for their keys, findings, quarantine, lock events,
   * deliveries and their attempts. `state` is the lock's new state, as JSON.
   */
  eraseDevice(deviceId: number, state: string | null): Promise<Erased>;
  /** Removes erased data from the files too, if the engine has older copies of it. */
  scrub(): Promise<void>;
  /** Deletes old rows in one chunk of a table, except for undelivered events. */
  deleteOld(chunk: AgingChunk): Promise<AgingResult>;
  listDevices(): Promise<DeviceReading[]>;
  /** Returns a page of the locks in service, without their states. */
  readDevices(page: DevicePage): Promise<Device[]>;
  /** Returns those of these locks that are in service, in any order, without their states. At most 1,000 at once. */
  findDevices(deviceIds: readonly number[]): Promise<Device[]>;
  /** Returns the number of locks in service, of all merchants or of one. */
  countDevices(merchantId?: number): Promise<number>;
  findDevice(mac: Mac): Promise<DeviceReading | null>;

  /* The methods below return only what the device did for its current merchant. */

  /**
   * Returns the latest uplinks from the lock (default) or from phones, newest first, ordered by the age of the
   * credential, life (a reflash starts a new one), boot, sequence (protocol.md §1), whenever they arrived.
   */
  readUplinks(deviceId: number, limit: number, source?: Source): Promise<StoredUplink[]>;
  /** Returns the device's findings, newest first; only those before `beforeId` if it is given. */
  readFindings(deviceId: number, limit: number, beforeId?: number): Promise<StoredFinding[]>;
  /** Returns the device's log, oldest first, in chunks of at most `limit`. */
  readLog(deviceId: number, limit: number): AsyncIterable<LogEntry[]>;
  /**
   * Reads the device's log one chunk at a time. A chunk is empty at the end of the log; a later call returns entries
   * that arrived since.
   */
  readLogChunks(deviceId: number, limit: number): { next(): Promise<LogEntry[]> };
  /** Returns the device's quarantined messages, newest first. */
  readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]>;
  addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl>;
  listWebhookUrls(): Promise<WebhookUrl[]>;

  /* Commands. */

  readonly commands: CommandStore;

  /* The store itself. */

  /** Counts the current figures, in a separate thread. */
  readFigures(): Promise<StoreFigures>;
  /** Returns the disk space used and free now. */
  readDiskSpace(): Promise<DiskSpace>;

  /** Returns when the newest uplink in the log was received, ms since the epoch; null if there is none. */
  readLastReceivedAtMs(): Promise<number | null>;
  /** Returns a named value about the store itself, such as the id of its key; null if it was never written. */
  readMetadata(name: string): Promise<string | null>;
  writeMetadata(name: string, value: string): Promise<void>;
  /**
   * Makes a copy of the whole store as of now, for a backup; writing continues meanwhile. Only one copy at a time.
   *
   * @throws LockgateError `backup-exists`, `no-room`
   */
  readCopy(): Promise<StoreCopy>;
  /** Closes the store; no method may be called afterwards. */
  close(): Promise<void>;
}
