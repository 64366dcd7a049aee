/**
 * The interface of a gateway's store, and its records. A contract suite (test/gateway/store/store-contract.ts) tests
 * every engine against it.
 *
 * A method that writes resolves after the write is on the disk (fsynced), or rejects with a StoreFailure (errors.ts). A
 * rejected call has changed nothing. store-methods.ts lists which methods write.
 *
 * An *uplink* is a message from a lock: a ping, which is an event for its merchant's webhooks, or the acknowledgement
 * of a command. Its *key* is its credential, boot (a counter of the lock's boots) and sequence (a counter within the
 * boot). The *log* is the table of all uplinks in the order of arrival. The *run's clock* follows the wall clock,
 * except in a sped-up simulation, and never goes back (protocol.md §3). *In service* is a lock that is registered and
 * not removed.
 */

import type { Finding, Withdrawal } from '../../../proto/power/judge/event.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { AuditStore } from './audit-store.js';
import type { CommandChange, CommandStore } from './command-record.js';
import type { ConsoleSessionStore } from './console-session-store.js';
import type { LogPosition } from './log/log-position.js';
import type { LockEvent, LogEntry, QuarantinedMessage, StoredFinding } from './log-entry.js';
import type { MarkStore } from './mark-store.js';
import type { AccessStore } from './merchants/access-store.js';
import type { Labels } from './merchants/device-labels.js';
import type { InvitationStore } from './merchants/invitation-store.js';
import type { Merchant, MerchantStore } from './merchants/merchant-store.js';
import type { DescribeLock } from './merchants/merchant-write.js';
import type { PeopleStore } from './merchants/people-store.js';
import type { ScanStore } from './merchants/uplink-scan.js';
import type { NoticeStore } from './notice-store.js';
import type { NotificationStore } from './notify/notification-store.js';
import type { OperatorTokenStore } from './operator-token-store.js';
import type { RefusalStore } from './refusal-store.js';
import type { SecretStore } from './secret-store.js';
import type { StoreCopy } from './store-copy.js';
import type { DiskSpace, StoreFigures } from './store-figures.js';
import type { StoredUplink } from './stored-uplink.js';
import type { UsageStore } from './usage-store.js';
import type { Failing, Hold, WebhookStore, WebhookUrl } from './webhook-store.js';
import type { NewMerchantEvent } from './webhooks/merchant-event.js';
import type { WebhookFilter } from './webhooks/webhook-filter.js';
import type { WhyStore } from './why-store.js';

export type { LockEvent, LogEntry, QuarantinedMessage, StoredFinding } from './log-entry.js';
export type { Merchant } from './merchants/merchant-store.js';
export type { StoredUplink } from './stored-uplink.js';
export type { WebhookUrl } from './webhook-store.js';

export interface Device {
  readonly id: number;
  readonly mac: Mac;
  readonly merchantId: number;
  readonly merchantName: string;
  readonly simulated: boolean;
  readonly createdAtMs: number;
  /** Null for a lock without a name. */
  readonly name: string | null;
  readonly labels: Labels;
}

/** A page of locks, in the order of their MACs. */
export interface DevicePage {
  /** Only locks of this merchant; all locks if undefined. */
  readonly merchantId?: number | undefined;
  /** Only locks after this MAC. */
  readonly afterMac?: Mac | undefined;
  readonly limit: number;
}

/** A lock and its credentials. */
export interface LockAccount {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  /** Whether its merchant is closed: then it can't connect. */
  readonly isMerchantClosed: boolean;
  /** Unrevoked ones first, then newest first; at most {@link MAX_CREDENTIALS_READ}. */
  readonly credentials: readonly StoredCredential[];
}

/** A hashed secret of a lock or of a phone that acts for it. */
export interface StoredCredential {
  readonly id: number;
  readonly secretHash: Buffer;
  /** When it expires, ms since the epoch, wall-clock time; null if it never expires. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

/** Whose credential it is. */
export interface CredentialOwner {
  readonly credentialId: number;
  readonly deviceId: number;
  readonly mac: Mac;
  /** Whether it is the lock's own or that of a phone. */
  readonly source: Source;
}

/** Maximum number of a lock's credentials to compare a CONNECT with: all that may be valid, then the newest revoked. */
export const MAX_CREDENTIALS_READ = 64;

/** Maximum number of phone credentials of a lock, not counting expired and revoked ones. */
export const MAX_PHONES_PER_LOCK = 32;

/** A phone that acts for a lock (protocol.md §1). */
export interface Phone {
  readonly credentialId: number;
  readonly name: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
}

export interface NewPhone {
  readonly mac: Mac;
  readonly name: string;
  readonly secretHash: Buffer;
  readonly expiresAtMs: number | null;
  readonly nowMs: number;
}

/** Credentials of a lock that are no longer valid, or soon will not be: the caller must close their connections. */
export interface InvalidCredentials {
  readonly deviceId: number;
  readonly credentialIds: readonly number[];
}

/** An operator's changes to a lock; members that are left out do not change. */
export interface DeviceChange {
  readonly mac: Mac;
  /** The merchant's name. */
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
  /** Null removes the name. */
  readonly name?: string | null | undefined;
  /** Replaces all labels. */
  readonly labels?: Labels | undefined;
  /** JSON of the lock's new state (locks/device-state.ts); null removes the state. */
  readonly state?: string | null;
  /** Given if `merchant` is: unfinished commands are cancelled as of this time, by the run's clock. */
  readonly cancelledAtMs?: number | undefined;
}

/** How many rows an erasure removed. */
export interface Erased {
  readonly uplinks: number;
  readonly findings: number;
  readonly quarantined: number;
  readonly lockEvents: number;
  readonly refusals: number;
  /** Deliveries that waited for a retry. */
  readonly pendingDeliveries: number;
}

/** The tables from which rows are deleted by age. */
export const AGING_TABLES = ['uplink', 'lock_event', 'finding', 'quarantine'] as const;

/** The name of the metadata entry with the latest time before which rows may have been deleted, by the run's clock. */
export const SWEPT_METADATA = 'swept-before-ms';

/** A chunk of a table, in the order of arrival, from which old rows are deleted. */
export interface AgingChunk {
  readonly table: (typeof AGING_TABLES)[number];
  /** Rows from before this time are too old: ms since the epoch, by the run's clock. */
  readonly beforeMs: number;
  /** Only rows after this id. */
  readonly afterId: number;
  /** Maximum number of rows examined. */
  readonly limit: number;
}

/** The outcome of an {@link AgingChunk}. */
export interface AgingResult {
  readonly deleted: number;
  /** Events that are too old but were not deleted, since they are undelivered. */
  readonly held: number;
  /** The `afterId` of the next chunk; null if no old row is left. */
  readonly nextId: number | null;
}

/**
 * The kinds of uplink by their stored numbers. Kind 0 is an acknowledgement; other kinds are pings, events for
 * merchants. Higher kinds are other events (webhooks/merchant-event.ts).
 */
export const UPLINK_KINDS = ['ack', 'cellular', 'gps', 'close_connection'] as const;

/** A decoded uplink to be appended to the log. */
export interface IncomingUplink {
  readonly type: 'uplink';
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  /** The first 8 bytes of the SHA-256 of `bytes`. The store recomputes it. */
  readonly digest: Buffer;
  /** Index into {@link UPLINK_KINDS}. */
  readonly kind: number;
  readonly bytes: Buffer;
  readonly receivedAtMs: number;
  /** It arrived over 60 s after the lock made it. */
  readonly buffered: boolean;
  /**
   * The life of the lock, a number that each reflash raises (mark-store.ts), that the uplink belongs to; not stored,
   * since marks may be added later.
   */
  readonly life?: number;
}

/** A connection event of a lock, a start or stop of the gateway, or a sent command: for traces (protocol.md §4). */
export interface IncomingLockEvent {
  readonly type: 'lock-event';
  readonly deviceId: number;
  readonly atMs: number;
  readonly event: LockEvent;
}

/** Bytes that can't be accepted as an uplink, to be quarantined. */
export interface IncomingQuarantine {
  readonly type: 'quarantine';
  readonly deviceId: number;
  readonly credentialId: number;
  readonly receivedAtMs: number;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

export type Incoming = IncomingUplink | IncomingQuarantine | IncomingLockEvent;

/**
 * The result of judging one event of a lock, that is, of checking it against the protocol's rules: new findings (broken
 * rules), and earlier findings that are taken back. Withdrawals are applied before findings.
 */
export interface Judged {
  readonly deviceId: number;
  readonly withdrawn: readonly Withdrawal[];
  readonly findings: readonly Finding[];
}

/** The content of one durable commit. */
export interface Commit {
  /** Entries for the log, in order. An uplink that the log already has with the same bytes is skipped. */
  readonly incoming: readonly Incoming[];
  /** The results of judging, in order. */
  readonly judged: readonly Judged[];
  /** JSON of each changed lock's state after the commit, by device id. */
  readonly states: ReadonlyMap<number, string>;
  /** In order. */
  readonly commands?: readonly CommandChange[];
  /** Events for merchants that the commit causes; stored if a webhook URL of the lock's merchant gets their type. */
  readonly merchantEvents?: readonly NewMerchantEvent[];
}

/** Maximum number of quarantined messages of a lock; the oldest are deleted first (protocol.md §1). */
export const MAX_QUARANTINED_PER_LOCK = 1000;

/**
 * Maximum number of connection events of a lock, exceeded by up to a few thousand; the oldest are deleted first. A
 * normal lock needs years to reach it; it limits a lock that connects in a tight loop. Uplinks have no such limit.
 */
export const MAX_LOCK_EVENTS_PER_LOCK = 100_000;

/** A retry that is due. */
export interface DueDelivery {
  readonly uplink: StoredUplink;
  /** How many attempts were made so far. */
  readonly attempts: number;
  /** Attempts before the event was last resent; the retry schedule does not count them. */
  readonly attemptsBefore: number;
}

/** One attempt at a delivery, and its outcome. */
export interface AttemptRecord {
  readonly urlId: number;
  readonly uplinkId: number;
  /** Attempts are numbered from 1. */
  readonly number: number;
  readonly atMs: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
  /** Whether the table of deliveries has a row for it. An event that waited for another has one before any attempt. */
  readonly hasRow?: boolean;
  /** The delivery's new state; `delivered` at the first attempt needs no row. */
  readonly outcome:
    | { readonly state: 'delivered' }
    | { readonly state: 'pending'; readonly nextAttemptAtMs: number }
    | { readonly state: 'dead' };
}

/** What the delivery worker of a URL stores in one commit. */
export interface DeliveryProgress {
  readonly urlId: number;
  readonly attempts: readonly AttemptRecord[];
  /** Unattempted events that wait for an earlier event of their lock; due from `atMs` on, once that event is final. */
  readonly blocked?: readonly { readonly uplinkId: number; readonly atMs: number }[];
  /** Uplink ids of events that can't be sent since their stored pings are damaged; no attempt was made. */
  readonly damaged?: readonly number[];
  /** How long every attempt has failed; null after a success; left out if unchanged. */
  readonly failing?: Failing | null;
  /** A pause that the receiver asked for. */
  readonly hold?: Hold;
  /** The new cursor: the position before the URL's oldest events without an outcome; left out if unchanged. */
  readonly cursor?: LogPosition | undefined;
  /** If given, disables the URL: a sentence why. */
  readonly disabledWhy?: string;
}

/** A lock's stored state, as JSON. */
export interface StoredState {
  readonly deviceId: number;
  readonly mac: Mac;
  readonly state: string;
  /** The row does not match its checksum: the disk changed it. */
  readonly isDamaged?: true;
}

/** A device with its state. */
export interface DeviceReading {
  readonly device: Device;
  /** JSON of the lock's state; null if it never sent an uplink. */
  readonly state: string | null;
}

export interface Store {
  /** The engine and the location, for log messages. */
  readonly description: string;
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
  /** What the command `why` reads. */
  readonly why: WhyStore;
  /** Reads of many uplinks of which few may be wanted. */
  readonly scans: ScanStore;
  readonly audit: AuditStore;
  /** Refused packets and connections of locks. */
  readonly refusals: RefusalStore;
  /** Reflash marks of locks. */
  readonly marks: MarkStore;
  /** Operators' named tokens. */
  readonly operatorTokens: OperatorTokenStore;
  /** Sessions of the console. */
  readonly consoleSessions: ConsoleSessionStore;

  /* Pings: the hot path. */

  /** Writes the whole commit in one transaction. */
  append(commit: Commit): Promise<void>;
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
   * locks without a state, are left out.
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
   * Returns the merchant's pings after a position, at most `limit`; with `all`, its other events too. Of each slot they
   * are the oldest ones, in order, without a gap; the events of one lock are in order too.
   */
  readEvents(merchantId: number, after: LogPosition, limit: number, kinds?: 'pings' | 'all'): Promise<StoredUplink[]>;
  /**
   * Returns the uplink ids after a position that already have an outcome at this URL: a failed event has a row in the
   * table of deliveries, a delivered event a stored attempt. The cursor may be before them if an older event has no
   * outcome.
   */
  readOutcomesAfter(urlId: number, after: LogPosition): Promise<number[]>;
  /**
   * Returns the URL's retries due by `nowMs`, longest due first; at an ordered URL, only each lock's oldest pending
   * event.
   */
  readDueDeliveries(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]>;
  /** Returns when the URL's next retry is due, except for these uplink ids, ms since the epoch; null if none waits. */
  nextDueAtMs(urlId: number, except?: ReadonlySet<number>): Promise<number | null>;
  recordProgress(progress: readonly DeliveryProgress[]): Promise<void>;

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
   * `keepOldUntilMs`. Returns the credentials that are no longer valid.
   */
  replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs?: number,
  ): Promise<InvalidCredentials>;
  addPhone(phone: NewPhone): Promise<Phone>;
  /** Returns the lock's unrevoked phones, and the newest revoked phones, newest first. */
  listPhones(mac: Mac): Promise<Phone[]>;
  /** Returns every credential of every lock and its phones, also revoked ones, oldest first. */
  listCredentials(): Promise<CredentialOwner[]>;
  /** Revokes the phone credential with this name. */
  revokePhone(mac: Mac, name: string, nowMs: number): Promise<InvalidCredentials>;
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

  /** Returns the latest uplinks from the lock (default) or from phones, newest first in the order of protocol.md §1. */
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

export interface NewDevice {
  readonly mac: Mac;
  readonly merchant: string;
  readonly simulated: boolean;
  readonly secretHash: Buffer;
  readonly nowMs: number;
  readonly name?: string | null | undefined;
  readonly labels?: Labels | undefined;
}

export interface NewWebhookUrl {
  readonly merchant: string;
  readonly url: string;
  /** Header values, sealed as in {@link WebhookUrl}. */
  readonly headersSealed: Readonly<Record<string, string>>;
  readonly secretSealed: Buffer;
  readonly ordered?: boolean | undefined;
  /** Which events the URL gets; all by default. */
  readonly filter?: WebhookFilter | undefined;
  /** Limits, as in {@link WebhookUrl}. */
  readonly attemptsPerSecond?: number | null | undefined;
  readonly timeoutMs?: number | null | undefined;
  readonly ca?: string | null | undefined;
  /** The URL gets uplinks after this position; by default it gets uplinks from now on. */
  readonly after?: LogPosition | undefined;
  readonly nowMs: number;
}
