/**
 * The store of a gateway. One contract suite (test/gateway/store/store-contract.ts) holds every engine to it.
 *
 * A method that writes resolves after the write is on the disk (fsynced), and rejects with a StoreFailure (errors.ts)
 * where it could not be; nothing of a rejected call remains.
 */

import type { Finding, Withdrawal } from '../../../proto/power/judge/event.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { AuditStore } from './audit-store.js';
import type { CommandChange, CommandStore } from './command-record.js';
import type { LockEvent, LogEntry, QuarantinedMessage, StoredFinding } from './log-entry.js';
import type { MarkStore } from './mark-store.js';
import type { AccessStore } from './merchants/access-store.js';
import type { PeopleStore } from './merchants/people-store.js';
import type { NoticeStore } from './notice-store.js';
import type { RefusalStore } from './refusal-store.js';
import type { SecretStore } from './secret-store.js';
import type { StoreCopy } from './store-copy.js';
import type { DiskSpace, StoreFigures } from './store-figures.js';
import type { StoredUplink } from './stored-uplink.js';
import type { UsageStore } from './usage-store.js';
import type { Failing, Hold, WebhookStore, WebhookUrl } from './webhook-store.js';
import type { WhyStore } from './why-store.js';

export type { LockEvent, LogEntry, QuarantinedMessage, StoredFinding } from './log-entry.js';
export type { StoredUplink } from './stored-uplink.js';
export type { WebhookUrl } from './webhook-store.js';

export interface Merchant {
  readonly id: number;
  readonly name: string;
  readonly createdAtMs: number;
}

export interface Device {
  readonly id: number;
  readonly mac: Mac;
  readonly merchantId: number;
  readonly merchantName: string;
  readonly simulated: boolean;
  readonly createdAtMs: number;
}

/** A lock and its credentials. */
export interface LockAccount {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  /** Unrevoked ones first, then newest first; at most {@link CREDENTIALS_READ}. */
  readonly credentials: readonly StoredCredential[];
}

/** A secret, hashed, of a lock or of a phone that acts for it. */
export interface StoredCredential {
  readonly id: number;
  readonly secretHash: Buffer;
  /** When it expires, ms since the epoch, wall-clock time; null where it never does. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

/** Credentials of a lock that a CONNECT is compared with: all that may be valid, and the newest revoked ones. */
export const CREDENTIALS_READ = 64;

/** Phone credentials that a lock may have at the same time, not counting expired and revoked ones. */
export const PHONES_PER_LOCK = 32;

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

/** Credentials of a lock that are no longer valid, now or from a time on: their live connections have to end. */
export interface EndedCredentials {
  readonly deviceId: number;
  readonly credentialIds: readonly number[];
}

/** An operator's changes to a lock; what is left out stays. */
export interface DeviceChange {
  readonly mac: Mac;
  /** The merchant's name. */
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
  /** JSON of the lock's new state; left out where it stays, null where there is none. */
  readonly state?: string | null;
  /** Given with a move: waiting commands are cancelled as of this time, by the run's clock. */
  readonly cancelledAtMs?: number | undefined;
}

/** What an erasure removed. */
export interface Erased {
  readonly uplinks: number;
  readonly findings: number;
  readonly quarantined: number;
  readonly lockEvents: number;
  readonly refusals: number;
  /** Deliveries that waited for a retry. */
  readonly pendingDeliveries: number;
}

/** The tables that grow with time, from which old rows are deleted. */
export const AGING_TABLES = ['uplink', 'lock_event', 'finding', 'quarantine'] as const;

/** A piece of a table, in the order of arrival, from which old rows are deleted. */
export interface AgingPiece {
  readonly table: (typeof AGING_TABLES)[number];
  /** Rows from before this time are too old: ms since the epoch, by the run's clock. */
  readonly beforeMs: number;
  /** Only rows after this id. */
  readonly afterId: number;
  /** Rows looked at. */
  readonly limit: number;
}

/** The outcome of an {@link AgingPiece}. */
export interface AgedPiece {
  readonly deleted: number;
  /** Events that are too old and not delivered yet: they stay. */
  readonly held: number;
  /** The `afterId` of the next piece; null where nothing old is left. */
  readonly nextId: number | null;
}

/** Kinds of uplink as stored: 0 is an acknowledgement, the others are pings and so events for merchants. */
export const UPLINK_KINDS = ['ack', 'cellular', 'gps', 'close_connection'] as const;

/** A decoded uplink on its way into the log. */
export interface IncomingUplink {
  readonly type: 'uplink';
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  /** The first 8 bytes of the SHA-256 of `bytes`. The store computes its own. */
  readonly digest: Buffer;
  /** Index into {@link UPLINK_KINDS}. */
  readonly kind: number;
  readonly bytes: Buffer;
  readonly receivedAtMs: number;
  readonly buffered: boolean;
  /** Its life of the lock (protocol.md §1); not stored, since marks may come later. */
  readonly life?: number;
}

/** An event of a lock's connection or of the gateway's listening, or a sent command: for traces (protocol.md §4). */
export interface IncomingLockEvent {
  readonly type: 'lock-event';
  readonly deviceId: number;
  readonly atMs: number;
  readonly event: LockEvent;
}

/** Bytes that can't be accepted as an uplink, on their way into quarantine. */
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

/** The result of judging one event of a lock. Withdrawals are applied before findings. */
export interface Judged {
  readonly deviceId: number;
  readonly withdrawn: readonly Withdrawal[];
  readonly findings: readonly Finding[];
}

/** The content of one durable commit. */
export interface Commit {
  /** For the log, in order. An uplink that it has already with the same bytes is skipped. */
  readonly incoming: readonly Incoming[];
  /** In order. */
  readonly judged: readonly Judged[];
  /** JSON of the state of each lock afterwards, by device id. */
  readonly states: ReadonlyMap<number, string>;
  /** In order. */
  readonly commands?: readonly CommandChange[];
}

/** How many quarantined messages are retained for each lock, oldest out first (protocol.md §1). */
export const QUARANTINE_PER_LOCK = 1000;

/**
 * How many connection events are retained for each lock, oldest out first, give or take a few thousand: years of a lock
 * that behaves, and a bound for one that connects in a tight loop. Its uplinks are not limited.
 */
export const LOCK_EVENTS_PER_LOCK = 100_000;

/** A retry that is due. */
export interface DueDelivery {
  readonly uplink: StoredUplink;
  /** How many attempts were made so far. */
  readonly attempts: number;
  /** How many of them before it was last resent: the retry schedule starts after them. */
  readonly attemptsBefore: number;
}

/** One attempt at a delivery, and its outcome. */
export interface AttemptRecord {
  readonly urlId: number;
  readonly uplinkId: number;
  /** 1 for the first. */
  readonly number: number;
  readonly atMs: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
  /** The delivery has a row already, though this may be its first attempt. */
  readonly hasRow?: boolean;
  /** The delivery's new state; `delivered` at the first attempt needs no row. */
  readonly outcome:
    | { readonly state: 'delivered' }
    | { readonly state: 'pending'; readonly nextAttemptAtMs: number }
    | { readonly state: 'dead' };
}

/** What a URL's worker stores in one commit. */
export interface DeliveryProgress {
  readonly urlId: number;
  readonly attempts: readonly AttemptRecord[];
  /** Events that wait unattempted for an earlier one of their lock; due from `atMs` on, once that is final. */
  readonly blocked?: readonly { readonly uplinkId: number; readonly atMs: number }[];
  /** Events that can't be sent since their stored pings are damaged; no attempt was made. */
  readonly damaged?: readonly number[];
  /** How long every attempt has failed; null after a success. Left out where it stays. */
  readonly failing?: Failing | null;
  /** Its receiver asked for a pause. */
  readonly hold?: Hold;
  /** The new cursor, where it moved. */
  readonly cursor?: number | undefined;
  /** Why the URL is disabled from now on. */
  readonly disabledWhy?: string;
}

/** A lock's stored state, as JSON. */
export interface StoredState {
  readonly deviceId: number;
  readonly mac: Mac;
  readonly state: string;
  /** Its row does not fit its checksum: a disk changed it. */
  readonly isDamaged?: true;
}

/** A device with its state. */
export interface DeviceReading {
  readonly device: Device;
  /** JSON of the lock's state; null where it never sent an uplink. */
  readonly state: string | null;
}

export interface Store {
  /** For people: which engine, and where. */
  readonly description: string;
  /** What operators do with webhooks. */
  readonly webhooks: WebhookStore;
  /** All secrets at once: which key they are sealed with, and another. */
  readonly secrets: SecretStore;
  /** SIM cards, counts, price plans, statements. */
  readonly usage: UsageStore;
  /** Merchants' API keys and tokens. */
  readonly access: AccessStore;
  /** Merchants' users, sessions and pets. */
  readonly people: PeopleStore;
  /** Notices for operators. */
  readonly notices: NoticeStore;
  /** What `why` looks up. */
  readonly why: WhyStore;
  readonly audit: AuditStore;
  /** What was refused of locks. */
  readonly refusals: RefusalStore;
  /** The marks of locks that were reflashed. */
  readonly marks: MarkStore;

  /* Pings: the hot path. */

  /** Makes all of it durable together. */
  append(commit: Commit): Promise<void>;
  /** The state last stored for a device, as JSON. */
  readDeviceState(deviceId: number): Promise<string | null>;
  /**
   * The states of all devices that have one, or of these. A state is as of the uplinks in the log when it was written,
   * those of its own commit included.
   */
  readDeviceStates(deviceIds?: readonly number[]): Promise<StoredState[]>;
  /**
   * Of the newest `most` uplinks, those that came after the stored state of their lock, in the order of arrival, in
   * pieces of at most `limit`. Uplinks of a merchant that had the lock before, and of locks without a state, are left
   * out.
   */
  readUplinksAfterStates(most: number, limit: number, deviceIds?: readonly number[]): AsyncIterable<StoredUplink[]>;
  /** The digests that the log has with one key; an empty one stands for all that were erased. */
  readDigests(credentialId: number, boot: number, sequence: number): Promise<Buffer[]>;
  /** The lock with this MAC, and its credentials of one kind (by default its own), for authentication. */
  findLock(mac: Mac, kind?: Source): Promise<LockAccount | null>;

  /* Deliveries: the other hot path. */

  /** The merchant's events after `afterId`, oldest first. */
  readEvents(merchantId: number, afterId: number, limit: number): Promise<StoredUplink[]>;
  /**
   * Events after `afterId` that have an outcome at this URL already: a failure has a row, a success an attempt. The
   * cursor may be before them because of an older event that has none.
   */
  readOutcomesAfter(urlId: number, afterId: number): Promise<number[]>;
  /**
   * The URL's retries due by `nowMs`, the longest due first; at an ordered URL, only each lock's oldest pending one.
   */
  readDueDeliveries(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]>;
  /** When the URL's next retry is due, except these (uplink ids), ms since the epoch; null where none waits. */
  nextDueAtMs(urlId: number, besides?: ReadonlySet<number>): Promise<number | null>;
  recordProgress(progress: readonly DeliveryProgress[]): Promise<void>;

  /* The registry. Each rejects with a LockgateError where a name or MAC is taken or missing. */

  addMerchant(name: string, nowMs: number): Promise<Merchant>;
  listMerchants(): Promise<Merchant[]>;
  addDevice(device: NewDevice): Promise<Device>;
  /** Adds all of them or none; a removed lock returns to service. */
  addDevices(devices: readonly NewDevice[]): Promise<void>;
  /** Those of these MACs that a lock in service has. */
  findTakenMacs(macs: readonly Mac[]): Promise<Mac[]>;
  /**
   * Gives the lock a new credential and revokes its others; the last one may stay valid until `keepOldUntilMs`. Returns
   * those that are no longer valid.
   */
  replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs?: number,
  ): Promise<EndedCredentials>;
  addPhone(phone: NewPhone): Promise<Phone>;
  /** The lock's phones that are not revoked, and the newest of those that are, newest first. */
  listPhones(mac: Mac): Promise<Phone[]>;
  /** Revokes the phone credential of this name. */
  revokePhone(mac: Mac, name: string, nowMs: number): Promise<EndedCredentials>;
  changeDevice(change: DeviceChange): Promise<void>;
  /** Revokes all credentials of a lock, its phones' too. @throws LockgateError `no-such-device` */
  revokeCredentials(mac: Mac, nowMs: number): Promise<void>;
  /**
   * Takes the lock out of service: revokes its credentials, deletes its state, and leaves its history. Waiting commands
   * are cancelled as of `cancelledAtMs`, by the run's clock; left out, as of `nowMs`.
   */
  removeDevice(mac: Mac, nowMs: number, cancelledAtMs?: number): Promise<void>;
  /** The id of a lock, in service or removed; null where there never was one. */
  findDeviceId(mac: Mac): Promise<number | null>;
  /**
   * Erases a lock's data, its positions above all: uplinks except for their keys, findings, quarantine, lock events,
   * deliveries and their attempts. `state` is its new state, as JSON.
   */
  eraseDevice(deviceId: number, state: string | null): Promise<Erased>;
  /** Removes what was erased from the files too, where the engine has older copies of it. */
  scrub(): Promise<void>;
  /** Deletes old rows in one piece of a table, except for events that a URL still needs. */
  deleteOld(piece: AgingPiece): Promise<AgedPiece>;
  listDevices(): Promise<DeviceReading[]>;
  /** How many locks are in service. */
  countDevices(): Promise<number>;
  findDevice(mac: Mac): Promise<DeviceReading | null>;
  /* What is read of a device is what it did for the merchant that has it now. */

  /** Its latest uplinks from the lock itself, or from phones, in the order of protocol.md §1, newest first. */
  readUplinks(deviceId: number, limit: number, source?: Source): Promise<StoredUplink[]>;
  /** The device's findings, newest first. */
  readFindings(deviceId: number, limit: number): Promise<StoredFinding[]>;
  /** The device's log, oldest first, in pieces of at most `limit`. */
  readLog(deviceId: number, limit: number): AsyncIterable<LogEntry[]>;
  /**
   * The same, a piece at a time. A piece is empty at the end of the log; the next call goes on with what came since.
   */
  readLogPieces(deviceId: number, limit: number): { next(): Promise<LogEntry[]> };
  /** The device's quarantined messages, newest first. */
  readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]>;
  addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl>;
  listWebhookUrls(): Promise<WebhookUrl[]>;

  /* Commands. */

  readonly commands: CommandStore;

  /* The store itself. */

  /** Figures as of now, counted in a thread. */
  readFigures(): Promise<StoreFigures>;
  /** Disk space that the store takes and has left, as of now. */
  readDiskSpace(): Promise<DiskSpace>;

  /** When the newest uplink in the log was received, ms since the epoch; null where there is none. */
  readLastReceivedAtMs(): Promise<number | null>;
  readMetadata(name: string): Promise<string | null>;
  writeMetadata(name: string, value: string): Promise<void>;
  /**
   * Makes a copy of the whole store as of now, for a backup; writing goes on meanwhile. One at a time.
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
}

export interface NewWebhookUrl {
  readonly merchant: string;
  readonly url: string;
  /** Values sealed, as {@link WebhookUrl} has them. */
  readonly headersSealed: Readonly<Record<string, string>>;
  readonly secretSealed: Buffer;
  readonly ordered?: boolean | undefined;
  /** The first uplink that it gets; left out, it follows the log from now on. */
  readonly fromUplinkId?: number | undefined;
  readonly nowMs: number;
}
